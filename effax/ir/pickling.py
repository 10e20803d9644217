"""Pickling of programs as flat lists, so that deep nesting needs no recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from effax.ir.recursion import postorder
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var

_HOLE: Final = Jaxpr((), (), ())


class Flat(NamedTuple):
    """A program whose equations name their subjaxprs by positions in the list."""

    binders: tuple[Var, ...]
    eqns: list[tuple[Eqn, tuple[int, ...]]]
    outs: tuple[Atom, ...]
    n_consts: int
    names: tuple[str, ...]
    out_names: tuple[str, ...]


def flattened(jaxpr: Jaxpr) -> list[Flat]:
    """Return the program and all nested ones in a list, each after its subjaxprs."""
    places: dict[int, int] = {}
    flat: list[Flat] = []
    for program in postorder(jaxpr):
        eqns = []
        for eqn in program.eqns:
            inner = eqn.prim.subjaxprs()
            prim = eqn.prim.with_subjaxprs([_HOLE] * len(inner)) if inner else eqn.prim
            eqns.append((eqn._replace(prim=prim), tuple([places[id(x)] for x in inner])))
        places[id(program)] = len(flat)
        names = program.names, program.out_names
        flat.append(Flat(program.binders, eqns, program.outs, program.n_consts, *names))
    return flat


def restored(flat: list[Flat]) -> Jaxpr:
    """Return the program that was flattened."""
    made: list[Jaxpr] = []
    for binders, eqns, outs, n_consts, *names in flat:
        whole = [
            eqn._replace(prim=eqn.prim.with_subjaxprs([made[i] for i in inside])) if inside else eqn
            for eqn, inside in eqns
        ]
        made.append(Jaxpr(binders, whole, outs, n_consts, *names))
    return made[-1]


def reduced(jaxpr: Jaxpr) -> tuple[Callable[[list[Flat]], Jaxpr], tuple[list[Flat]]]:
    """Return how to restore the program, as ``__reduce__`` does."""
    return restored, (flattened(jaxpr),)
