"""The indexed part of an array: its axes, picks and spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from effax.ir.dtypes import DType
from effax.ir.indexing import Dim, Indexer, Layout, Mode, Pick, is_dynamic, layout
from effax.lowering import ops
from effax.lowering.writer import Val, Writer

Combine = Callable[[Writer, Val, Val], Val]
"""What to store, from the old element and the given one."""


def replaced(w: Writer, old: Val, new: Val) -> Val:
    return new


class LoweredAxis(NamedTuple):
    """An entry of an indexer with its operand (in the index dtype) and the axis's size."""

    dim: Dim
    operand: Val | None
    size: int


class LoweredIndex(NamedTuple):
    """What part of an array is meant, with its operands at hand.

    Attributes:
        axes: one entry an axis.
        layout: the shape of the part, and where the picks' axes are in it.
        dtype: of indices.
        drop: whether picks outside of the bounds count for nothing.
    """

    axes: tuple[LoweredAxis, ...]
    layout: Layout
    dtype: DType
    drop: bool

    @property
    def is_window(self) -> bool:
        """Whether each axis has one position or one slice."""
        return not any(_is_array(a) for a in self.axes)

    @property
    def picks(self) -> tuple[int, ...]:
        """The axes that go."""
        return tuple([k for k, a in enumerate(self.axes) if isinstance(a.dim, Pick)])


def _is_array(axis: LoweredAxis) -> bool:
    return isinstance(axis.dim, Pick) and axis.operand is not None and axis.operand.shape != ()


def placed(w: Writer, indexer: Indexer, x: Val, operands: Sequence[Val]) -> LoweredIndex:
    """The indexer's entries with their operands."""
    dtype = ops.index_dtype([o.type for o in operands], x.shape)
    feed = iter([ops.index(w, o, dtype) for o in operands])
    axes = [
        LoweredAxis(dim, next(feed) if is_dynamic(dim) else None, n)
        for dim, n in zip(indexer.dims, x.shape, strict=True)
    ]
    shapes = [o.shape for o in operands]
    return LoweredIndex(tuple(axes), layout(indexer, shapes), dtype, indexer.mode is Mode.DROP)


def in_bounds(w: Writer, place: LoweredIndex) -> Val | None:
    """Whether the picks are inside of the bounds, in their shape, where that is asked."""
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
    """An operand of a pick in the shape of all of them."""
    axes = range(len(place.pick_shape) - len(x.shape), len(place.pick_shape))
    return ops.broadcast(w, x, place.pick_shape, axes)
