"""Lowering of ``scatter``, ``scatter_add`` and the like.

An update of a window is a ``dynamic_update_slice``, others are a ``scatter``; XLA performs both in
place if the array has no later use. See :mod:`effax.lowering.ordering` for earlier reads.
"""

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
    """Return the combination by an operation; ``of_booleans`` replaces it for booleans."""

    def combine(w: Writer, old: Val, new: Val) -> Val:
        logical = family(old.type.dtype) == "bool"
        return ops.same(w, of_booleans if of_booleans and logical else name, old, new)

    return combine


def scatter(w: Writer, prim: i.Scatter, ins: Sequence[Val]) -> Sequence[Val]:
    return (_updated(w, prim.indexer, ins, replaced),)


def combining_rule(combine: Combine) -> LoweringRule[i.Combining]:
    """Return the rule of an update by a combination."""
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
