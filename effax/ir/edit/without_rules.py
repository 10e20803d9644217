"""Removal of the rules of calls, where no transformation follows."""

from __future__ import annotations

from effax.ir.owners import owner_of
from effax.ir.recursion import postorder
from effax.ir.syntax import Eqn, Jaxpr


def without_rules(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with plain calls for calls whose rules belong to Python functions.

    It keeps none of these functions alive, and arguments that only rules use are dead code.
    """
    return jaxpr if owner_of(jaxpr) is None else plain_calls(jaxpr)


def plain_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with plain calls for all calls that have rules, at every depth."""
    made: dict[int, Jaxpr] = {}

    def plain(eqn: Eqn) -> Eqn:
        inner = eqn.prim.subjaxprs()
        if not any(made[id(j)] is not j for j in inner) and not eqn.prim.has_own_rules:
            return eqn
        prim = eqn.prim.with_subjaxprs([made[id(j)] for j in inner])
        call = prim.as_call() if prim.has_own_rules else None
        return eqn._replace(prim=prim if call is None else call)

    for inner in postorder(jaxpr):
        eqns = list(map(plain, inner.eqns))
        same = all(a is b for a, b in zip(eqns, inner.eqns, strict=True))
        made[id(inner)] = inner if same else inner.replace(eqns=eqns)
    return made[id(jaxpr)]
