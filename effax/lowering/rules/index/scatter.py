"""Lowering of ``scatter`` and of scatters that combine."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.dtypes import family
from effax.ir.indexing import Indexer
from effax.ir.prims import index as i
from effax.lowering import ops
from effax.lowering.rules.index.pieces import scattered
from effax.lowering.rules.index.place import Combine, placed, replaced
from effax.lowering.rules.index.window import window_write
from effax.lowering.writer import LoweringRule, Val, Writer


def combining(name: str, of_booleans: str | None = None) -> Combine:
    """Combine by an operation; booleans may have one of their own."""

    def combine(w: Writer, old: Val, new: Val) -> Val:
        logical = family(old.type.dtype) == "bool"
        return ops.same(w, of_booleans if of_booleans and logical else name, old, new)

    return combine


def scatter(w: Writer, prim: i.Scatter, ins: Sequence[Val]) -> Sequence[Val]:
    return (_updated(w, prim.indexer, ins, replaced),)


def combining_rule(combine: Combine) -> LoweringRule[i.Combining]:
    """The rule of an update that combines so."""
    return lambda w, prim, ins: (_updated(w, prim.indexer, ins, combine),)


def _updated(w: Writer, indexer: Indexer, ins: Sequence[Val], combine: Combine) -> Val:
    x, value, *operands = ins
    if x.type.size == 0 or value.type.size == 0:
        return x
    if indexer.is_whole(x.shape):
        return combine(w, x, value)
    place = placed(w, indexer, x, operands)
    if place.is_window:
        return window_write(w, place, x, value, combine)
    return scattered(w, place, x, value, combine)
