"""Programs in place of rules that return one program for all questions."""

from __future__ import annotations

from typing import Final

from effax.ir.recursion import postorder
from effax.ir.syntax import Eqn, Jaxpr

MOST_ROUNDS: Final = 8
"""The deepest nest of rules: rules whose programs have calls of the same rules never end."""


def answered(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with the programs of solvers and linear calls in place of their rules.

    A program with more than ``MOST_ROUNDS`` rules inside of each other is returned as it is.
    """
    found = jaxpr
    for _ in range(MOST_ROUNDS):
        before, found = found, _once(found)
        if before is found:
            return found
    return jaxpr


def _once(jaxpr: Jaxpr) -> Jaxpr:
    made: dict[int, Jaxpr] = {}

    def asked(eqn: Eqn) -> Eqn:
        inner = eqn.prim.subjaxprs()
        same = all(made[id(j)] is j for j in inner)
        prim = eqn.prim if same else eqn.prim.with_subjaxprs([made[id(j)] for j in inner])
        prim = prim.answered()
        return eqn if prim is eqn.prim else eqn._replace(prim=prim)

    for inner in postorder(jaxpr):
        eqns = list(map(asked, inner.eqns))
        same = all(a is b for a, b in zip(eqns, inner.eqns, strict=True))
        made[id(inner)] = inner if same else inner.replace(eqns=eqns)
    return made[id(jaxpr)]
