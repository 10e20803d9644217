"""Reads and updates at arrays of positions: StableHLO's gather and scatter."""

from __future__ import annotations

from typing import NamedTuple

from effax.ir.indexing import Pick, Span
from effax.ir.types import ArrayType, Shape, array_type
from effax.lowering import ops
from effax.lowering.rules.index.place import Combine, LoweredIndex
from effax.lowering.writer import Val, Writer


class Pieces(NamedTuple):
    """The parameters that ``gather`` and ``scatter`` share.

    A slice with a step is represented by an array of positions, as a pick is.

    Attributes:
        positions: integers, on the batch axes and a last axis over ``mapped``.
        mapped: the array axes that the positions index (``start_index_map``).
        collapsed: the array axes on which a window has size 1 (``collapsed_slice_dims``).
        offsets: the axes of the part that run inside a window (``offset_dims``).
        sizes: the sizes of a window (``slice_sizes``).
    """

    positions: Val
    mapped: tuple[int, ...]
    collapsed: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: Shape


def _pieces(w: Writer, place: LoweredIndex, clamped: bool) -> Pieces:
    """Return the parameters; picks are clamped if ``clamped``, unless the mode drops them."""
    offsets, batch = _part_axes(place)
    shape = tuple([place.layout.shape[k] for k in batch])
    columns: list[Val] = []
    mapped: list[int] = []
    collapsed: list[int] = []
    sizes: list[int] = []
    spans = _span_positions(place)
    for axis, (dim, operand, size) in enumerate(place.axes):
        if isinstance(dim, Pick):
            where = _pick_position(w, place, axis, clamped and not place.drop)
            axes = [batch.index(k) for k in _pick_axes(place, where)]
        elif dim.step != 1:
            where = _stepped(w, place, axis)
            axes = [batch.index(spans[axis])]
        else:
            sizes.append(dim.size)
            if operand is None and not dim.start:
                continue
            start = place.axes[axis].operand
            where = (
                w.constant(dim.start or 0, array_type((), place.dtype))
                if start is None
                else ops.clamped(w, start, 0, size - dim.size)
            )
            columns.append(ops.broadcast(w, where, shape, []))
            mapped.append(axis)
            continue
        sizes.append(1)
        collapsed.append(axis)
        mapped.append(axis)
        columns.append(ops.broadcast(w, where, shape, axes))
    ranked = [ops.reshape(w, column, (*shape, 1)) for column in columns]
    index = ops.concatenate(w, ranked, len(shape))
    return Pieces(index, tuple(mapped), tuple(collapsed), tuple(offsets), tuple(sizes))


def _span_positions(place: LoweredIndex) -> dict[int, int]:
    """Return the axis of the part for each array axis with a span."""
    position, n = place.layout.position, len(place.layout.pick_shape)
    stays = [k for k, a in enumerate(place.axes) if isinstance(a.dim, Span)]
    return {axis: at if at < position else at + n for at, axis in enumerate(stays)}


def _part_axes(place: LoweredIndex) -> tuple[list[int], list[int]]:
    """Return the part's axes that run inside a window, and the others."""
    spans = _span_positions(place)
    offsets = [at for axis, at in spans.items() if place.axes[axis].dim[-1] == 1]
    batch = [k for k in range(len(place.layout.shape)) if k not in offsets]
    return offsets, batch


def _pick_axes(place: LoweredIndex, where: Val) -> range:
    """Return the part's axes for the axes of a pick's operand."""
    end = place.layout.position + len(place.layout.pick_shape)
    return range(end - len(where.shape), end)


def _pick_position(w: Writer, place: LoweredIndex, axis: int, clamped: bool) -> Val:
    dim, operand, size = place.axes[axis]
    if operand is None:
        return w.constant(dim[0] or 0, array_type((), place.dtype))
    return ops.clamped(w, operand, 0, size - 1) if clamped else operand


def _stepped(w: Writer, place: LoweredIndex, axis: int) -> Val:
    """Return the positions of a slice with a step: ``start + step·(0, 1, ...)``."""
    dim, operand, size = place.axes[axis]
    assert isinstance(dim, Span)
    type_ = array_type((dim.size,), place.dtype)
    count = ops.iota(w, type_, 0)
    offset = ops.same(w, "multiply", count, w.constant(dim.step, type_))
    if operand is None:
        return ops.same(w, "add", offset, w.constant(dim.start or 0, type_))
    reach = (dim.size - 1) * dim.step
    low, high = max(0, -reach), size - 1 - max(0, reach)
    start = ops.clamped(w, operand, low, high)
    return ops.same(w, "add", offset, w.repeat(start, (dim.size,)))


def gathered(w: Writer, place: LoweredIndex, x: Val, type_: ArrayType) -> Val:
    # StableHLO's gather clamps positions.
    pieces = _pieces(w, place, clamped=False)
    numbers = (
        f"offset_dims = {ops.numbers(pieces.offsets)}, "
        f"collapsed_slice_dims = {ops.numbers(pieces.collapsed)}, "
        f"start_index_map = {ops.numbers(pieces.mapped)}, "
        f"index_vector_dim = {len(pieces.positions.shape) - 1}"
    )
    text = (
        f'"stablehlo.gather"({x}, {pieces.positions}) <{{dimension_numbers = '
        f"#stablehlo.gather<{numbers}>, slice_sizes = {ops.array(pieces.sizes)}}}> : "
        f"{ops.signature([x, pieces.positions], type_)}"
    )
    return w.op1(text, type_)


def scattered(w: Writer, place: LoweredIndex, x: Val, value: Val, combine: Combine) -> Val:
    # StableHLO's scatter drops updates out of bounds.
    pieces = _pieces(w, place, clamped=True)
    numbers = (
        f"update_window_dims = {ops.numbers(pieces.offsets)}, "
        f"inserted_window_dims = {ops.numbers(pieces.collapsed)}, "
        f"scatter_dims_to_operand_dims = {ops.numbers(pieces.mapped)}, "
        f"index_vector_dim = {len(pieces.positions.shape) - 1}"
    )
    element = x.type.update(shape=())
    body = w.region([element, element], lambda old, new: (combine(w, old, new),))
    text = (
        f'"stablehlo.scatter"({x}, {pieces.positions}, {value}) <{{scatter_dimension_numbers = '
        f"#stablehlo.scatter<{numbers}>}}> ({body}) : "
        f"{ops.signature([x, pieces.positions, value], x.type)}"
    )
    return w.op1(text, x.type)
