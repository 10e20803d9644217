"""Equality of programs up to the numbers of their variables."""

from __future__ import annotations

from collections.abc import Mapping

from effax.ir.errors import IllTyped
from effax.ir.recursion import postorder
from effax.ir.syntax import Atom, Jaxpr, Lit, Var


def alpha_eq(first: Jaxpr, second: Jaxpr) -> bool:
    """Return whether two programs are equal up to the numbers of variables, at every depth.

    Raises:
        IllTyped: one of them uses a variable that is not in scope.
    """
    return renumbered(first) == renumbered(second)


def renumbered(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with variables numbered in order of binding, at every depth.

    Raises:
        IllTyped: a variable that is not in scope is used.
    """
    done: dict[int, Jaxpr] = {}
    for program in postorder(jaxpr):
        done[id(program)] = renumbered_alone(program, done)
    return done[id(jaxpr)]


def renumbered_alone(jaxpr: Jaxpr, done: Mapping[int, Jaxpr] = {}) -> Jaxpr:
    """Return one program renumbered; ``done`` has other subjaxprs by the ids of its own."""
    names: dict[int, Var] = {}

    def bind(v: Var) -> Var:
        fresh = names[v.id] = Var(len(names), v.type)
        return fresh

    def use(a: Atom) -> Atom:
        if isinstance(a, Lit):
            return a
        if a.id not in names:
            raise IllTyped(
                f"{a} is not in scope",
                expected="a variable that is bound before",
                found=repr(a),
                remedy="`substitute(jaxpr, {v: atom})` replaces it; `check` lists all faults",
            )
        return names[a.id]

    binders = [bind(v) for v in jaxpr.binders]
    eqns = []
    for eqn in jaxpr.eqns:
        inner = eqn.prim.subjaxprs()
        prim = eqn.prim.with_subjaxprs([done.get(id(j), j) for j in inner]) if inner else eqn.prim
        ins = tuple(map(use, eqn.ins))
        eqns.append(eqn._replace(prim=prim, ins=ins, outs=tuple(map(bind, eqn.outs))))
    outs = [use(a) for a in jaxpr.outs]
    return Jaxpr(binders, eqns, outs, jaxpr.n_consts, jaxpr.names, jaxpr.out_names)
