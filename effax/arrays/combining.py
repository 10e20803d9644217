"""Updates that combine old elements with new ones, also where positions repeat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import bind1
from effax.arrays.device_array import DeviceArray
from effax.arrays.indexing import Selection
from effax.arrays.operators import ops
from effax.ir.dtypes import family
from effax.ir.indexing import Mode, Pick, Span
from effax.ir.prims import Gather, Scatter
from effax.ir.prims.index import Combining
from effax.ir.types import Shape

Combine = Callable[[Array, Array], Array]


def combined(
    x: Array,
    at: Selection,
    value: Array,
    combine: Combine,
    unique: bool,
    prim: type[Combining] | None = None,
) -> Array:
    """Return an array with a value combined at a selection; at repeated positions, in order.

    Args:
        x: the array.
        at: the selection.
        value: the value, in the shape of the selection's indexer.
        combine: the elementwise function of old and new elements.
        unique: whether no position occurs twice.
        prim: the primitive of this combination.
    """
    if unique or not _may_repeat(x.shape, at):
        clipped = Gather(at.indexer._replace(mode=Mode.CLIP))
        new = ops.astype(combine(bind1(clipped, x, *at.operands), value), x.dtype)
        return bind1(Scatter(at.indexer), x, new, *at.operands)
    if prim is not None and family(x.dtype) in prim.accepts:
        return bind1(prim(at.indexer), x, value, *at.operands)
    return _one_by_one(x, at, value, combine)


def _picks(at: Selection) -> list[Array]:
    """Return the operands that are positions, in order."""
    return [o for d, o in zip(_dynamic(at), at.operands, strict=True) if isinstance(d, Pick)]


def _may_repeat(shape: Shape, at: Selection) -> bool:
    """Return whether a position may occur twice among the picks."""
    picks = _picks(at)
    if np.prod(at.layout.pick_shape, dtype=int) <= 1:
        return False
    if not all(isinstance(p, DeviceArray) for p in picks):
        return True
    known = [p.numpy() for p in picks]
    if at.indexer.mode is Mode.CLIP:
        sizes = [n for d, n in zip(at.indexer.dims, shape, strict=True) if d == Pick(None)]
        known = [np.clip(p, 0, max(n - 1, 0)) for p, n in zip(known, sizes, strict=True)]
    rows = np.stack([np.ravel(p) for p in np.broadcast_arrays(*known)], 1)
    return len(np.unique(rows, axis=0)) < len(rows)


def _one_by_one(x: Array, at: Selection, value: Array, combine: Combine) -> Array:
    """Apply the update once per pick, in order, so that each sees the previous ones."""
    pick_shape, position, _ = at.layout
    count = int(np.prod(pick_shape))
    n = len(pick_shape)
    rows = ops.moveaxis(value, tuple(range(position, position + n)), tuple(range(n)))
    rows = ops.reshape(rows, (count, *rows.shape[n:]))
    picks = [ops.reshape(ops.broadcast_to(p, pick_shape), (count,)) for p in _picks(at)]
    spans = [o for d, o in zip(_dynamic(at), at.operands, strict=True) if isinstance(d, Span)]

    def step(array: Array, one: tuple[Array, ...]) -> tuple[Array, None]:
        row, *here = one
        feed, starts = iter(here), iter(spans)
        operands = [next(feed) if isinstance(d, Pick) else next(starts) for d in _dynamic(at)]
        old = bind1(Gather(at.indexer._replace(mode=Mode.CLIP)), array, *operands)
        new = ops.astype(combine(old, row), array.dtype)
        return bind1(Scatter(at.indexer), array, new, *operands), None

    start = x if not x.weak_type else ops.astype(x, x.dtype)
    result: Array = ops.scan(step, start, (rows, *picks))[0]
    return result


def _dynamic(at: Selection) -> list[Pick | Span]:
    return [d for d in at.indexer.dims if d[0] is None]
