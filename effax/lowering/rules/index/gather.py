"""Lowering of ``gather``."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.indexing import Layout
from effax.ir.prims import index as i
from effax.lowering import ops
from effax.lowering.rules.index.pieces import gathered
from effax.lowering.rules.index.place import in_bounds, placed
from effax.lowering.rules.index.window import window_read
from effax.lowering.writer import Val, Writer


def gather(w: Writer, prim: i.Gather, ins: Sequence[Val]) -> Sequence[Val]:
    x, *operands = ins
    if prim.indexer.is_whole(x.shape):
        return (x,)
    place = placed(w, prim.indexer, x, operands)
    type_ = x.type.update(shape=place.layout.shape)
    if x.type.size == 0 or type_.size == 0:
        return (w.constant(0, type_),)
    part = window_read(w, place, x) if place.is_window else gathered(w, place, x, type_)
    inside = in_bounds(w, place)
    if inside is None:
        return (part,)
    return (ops.select(w, beside(w, inside, place.layout), part, ops.full(w, 0, part)),)


def beside(w: Writer, x: Val, place: Layout) -> Val:
    """Broadcast one value for each pick to the shape of the part; a scalar is unchanged."""
    if not x.shape:
        return x
    axes = range(place.position, place.position + len(place.pick_shape))
    return ops.broadcast(w, x, place.shape, axes)
