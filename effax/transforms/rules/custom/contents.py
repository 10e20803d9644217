"""Programs on the contents of references, for linear equations that run later than their call."""

from __future__ import annotations

from effax.ir.build import Builder
from effax.ir.indexing import whole
from effax.ir.prims import Get, NewRef
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType


def contents(b: Builder, atom: Atom) -> Atom:
    """Return an array, or the contents of a reference, which are read."""
    type_ = atom.type
    return b(Get(whole(type_.shape)), atom) if isinstance(type_, RefType) else atom


def on_contents(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program on arrays: it copies the contents of each reference to a local one.

    What it writes is discarded.
    """
    if not any(isinstance(t, RefType) for t in jaxpr.in_types):
        return jaxpr
    b = Builder()
    args: list[Atom] = [
        b(NewRef(t.kind), b.bind(t.inner)) if isinstance(t, RefType) else b.bind(t)
        for t in jaxpr.in_types
    ]
    outs = b.inline_jaxpr(jaxpr, args)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)
