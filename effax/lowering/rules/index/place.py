"""The indexed part of an array: its picks (positions) and spans (slices), by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from effax.ir.dtypes import DType
from effax.ir.indexing import Dim, Indexer, Layout, Mode, Pick, Span, is_dynamic, layout
from effax.lowering import ops
from effax.lowering.writer import Val, Writer

Combine = Callable[[Writer, Val, Val], Val]
"""A function of the old element and the new one that returns the element to store."""


def replaced(w: Writer, old: Val, new: Val) -> Val:
    return new


class LoweredAxis(NamedTuple):
    """An entry of an indexer with its operand (in the index dtype) and the axis's size."""

    dim: Dim
    operand: Val | None
    size: int


class LoweredIndex(NamedTuple):
    """An indexed part of an array, with the operands of the indexer.

    Attributes:
        axes: one entry for each axis of the array.
        layout: the shape of the part, and the position of the picks' axes in it.
        dtype: the dtype of indices.
        drop: whether picks out of bounds are ignored; otherwise they are clamped.
    """

    axes: tuple[LoweredAxis, ...]
    layout: Layout
    dtype: DType
    drop: bool

    @property
    def is_window(self) -> bool:
        """True if each axis has one position or one slice.

        XLA updates a window (``dynamic_update_slice``) faster than scattered elements.
        """
        return not any(_is_array(a) for a in self.axes)


def _is_array(axis: LoweredAxis) -> bool:
    return isinstance(axis.dim, Pick) and axis.operand is not None and axis.operand.shape != ()


def placed(w: Writer, indexer: Indexer, x: Val, operands: Sequence[Val]) -> LoweredIndex:
    """Return the indexer's entries with their operands."""
    dtype = ops.index_dtype([o.type for o in operands], x.shape)
    feed = iter(operands)
    axes = [
        LoweredAxis(dim, _position(w, dim, next(feed), n, dtype) if is_dynamic(dim) else None, n)
        for dim, n in zip(indexer.dims, x.shape, strict=True)
    ]
    shapes = [o.shape for o in operands]
    return LoweredIndex(tuple(axes), layout(indexer, shapes), dtype, indexer.mode is Mode.DROP)


def _position(w: Writer, dim: Dim, operand: Val, size: int, dtype: DType) -> Val:
    """Return an operand in the index dtype, negative positions counted from the end if it wraps."""
    at = ops.index(w, operand, dtype)
    if isinstance(dim, Span) or not dim.wraps or operand.type.dtype.kind == "u":
        return at
    from_end = ops.same(w, "add", at, ops.full(w, size, at))
    return ops.select(w, ops.compare(w, "LT", at, ops.full(w, 0, at)), from_end, at)


def in_bounds(w: Writer, place: LoweredIndex) -> Val | None:
    """Return whether picks are in bounds, in their shape; None if they are clamped."""
    found: Val | None = None
    if place.drop:
        for dim, operand, size in place.axes:
            if isinstance(dim, Pick) and operand is not None:
                low = ops.compare(w, "GE", operand, ops.full(w, 0, operand))
                high = ops.compare(w, "LT", operand, ops.full(w, size, operand))
                here = ops.same(w, "and", low, high)
                here = to_picks(w, here, place.layout)
                found = here if found is None else ops.same(w, "and", found, here)
    return found


def to_picks(w: Writer, x: Val, place: Layout) -> Val:
    """Broadcast an operand of one pick to the shape of all picks."""
    axes = range(len(place.pick_shape) - len(x.shape), len(place.pick_shape))
    return ops.broadcast(w, x, place.pick_shape, axes)
