"""Indexers: descriptions of a part of an array or a reference.

An indexer has one entry per axis, and a mode for positions outside of the bounds. Its dynamic
parts (``None`` in an entry) are operands, in the order of the entries. Arrays (``gather``,
``scatter``) and references (``get``, ``swap``, ``addupdate``) share it, so the transpose of an
indexed read is an indexed accumulation at the same place, and never a dense one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from effax.ir.dtypes import is_integer
from effax.ir.errors import BadIndex, IllTyped
from effax.ir.sizes import joint_shape
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.types import ArrayType, Shape, Type


class Span(NamedTuple):
    """``size`` positions from ``start`` in steps of ``step``; the axis stays.

    A dynamic start (``None``) moves inward until the span fits.
    """

    start: int | None
    size: int
    step: int = 1


class Pick(NamedTuple):
    """One position (the axis is removed), or an integer array of positions as operand.

    If it ``wraps``, negative positions of the operand count from the end of the axis.
    """

    at: int | None
    wraps: bool = False


Dim = Span | Pick


class Mode(Enum):
    """The treatment of picked positions outside of ``[0, size)``.

    ``CLIP``: they are clamped to the nearest position; along an empty axis they are dropped.
    ``DROP``: reads return zero, writes and accumulations do nothing. A dropped read and a dropped
    accumulation are transposes of each other, so ``DROP`` is its own adjoint; ``CLIP`` is its own
    as well, since both sides use the same clamped position.
    """

    CLIP = "clip"
    DROP = "drop"


class Indexer(NamedTuple):
    """A part of an array: one entry per axis."""

    dims: tuple[Dim, ...]
    mode: Mode = Mode.CLIP

    @property
    def n_operands(self) -> int:
        """The number of operands."""
        return sum(is_dynamic(d) for d in self.dims)

    def is_whole(self, shape: Shape) -> bool:
        """Return whether it selects a whole array of this shape, in order."""
        return self.dims == tuple([Span(0, n) for n in shape])


def is_dynamic(dim: Dim) -> bool:
    """Return whether the entry takes an operand."""
    return dim[0] is None


def whole(shape: Shape) -> Indexer:
    """Return the indexer of a whole array, ``[...]``."""
    return Indexer(tuple(Span(0, n) for n in shape))


def row(shape: Shape, index: int | None = None) -> Indexer:
    """Return the indexer of ``[index]``, dynamic if ``index`` is None."""
    return Indexer((Pick(index), *(Span(0, n) for n in shape[1:])))


class Layout(NamedTuple):
    """The position of the picks' broadcast axes in the result, and the result's shape."""

    pick_shape: Shape
    position: int
    shape: Shape


def layout(indexer: Indexer, operands: Sequence[Shape]) -> Layout:
    """Return the layout by NumPy's rule: adjacent picks stay in place, others move to the front."""
    feed = iter(operands)
    pick_shapes: list[Shape] = []
    at: list[int] = []
    spans: list[int] = []
    for axis, dim in enumerate(indexer.dims):
        shape = next(feed) if is_dynamic(dim) else ()
        if isinstance(dim, Pick):
            pick_shapes.append(shape)
            at.append(axis)
        else:
            spans.append(dim.size)
    broadcast = pick_shape(pick_shapes)
    adjacent = bool(at) and at[-1] - at[0] == len(at) - 1
    position = at[0] if adjacent else 0
    return Layout(broadcast, position, (*spans[:position], *broadcast, *spans[position:]))


def pick_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the common shape of picks. Raises IllTyped where they do not broadcast."""
    try:
        return joint_shape(shapes)
    except ValueError:
        raise IllTyped(
            "index arrays do not broadcast with each other",
            expected="shapes that broadcast",
            found=", ".join(map(str, shapes)),
        ) from None


def indexed_shape(indexer: Indexer, shape: Shape, operands: Sequence[Type]) -> Shape:
    """Return the shape of the indexed part. Raises IllTyped or BadIndex."""
    if len(indexer.dims) != len(shape):
        raise IllTyped(
            "an indexer needs one entry per axis",
            expected=f"{len(shape)} entries for shape {shape}",
            found=str(len(indexer.dims)),
        )
    if len(operands) != indexer.n_operands:
        raise IllTyped(
            "an indexer has the wrong number of operands",
            expected=str(indexer.n_operands),
            found=str(len(operands)),
        )
    feed = iter(operands)
    for axis, (dim, size) in enumerate(zip(indexer.dims, shape, strict=True)):
        if is_dynamic(dim):
            _check_operand(axis, dim, next(feed))
        elif isinstance(dim, Pick) and dim.wraps:
            raise IllTyped(
                f"the index of axis {axis} is static, and wraps",
                expected="an operand, or a position that is not negative",
                found=str(dim.at),
            )
        _check_bounds(axis, dim, size, shape)
    return layout(indexer, [o.shape for o in operands]).shape


def _check_operand(axis: int, dim: Dim, type_: Type) -> None:
    integers = isinstance(type_, ArrayType) and is_integer(type_.dtype)
    if not integers or (isinstance(dim, Span) and type_.shape):
        raise IllTyped(
            f"the index of axis {axis} has the wrong type",
            expected="an integer scalar" if isinstance(dim, Span) else "integers",
            found=str(type_),
        )


def _check_bounds(axis: int, dim: Dim, size: int, shape: Shape) -> None:
    if isinstance(dim, Pick):
        if dim.at is not None and not 0 <= dim.at < size:
            raise BadIndex(
                f"index {dim.at} is out of bounds for axis {axis}",
                expected=f"at least 0 and less than {size}",
                found=f"{dim.at} for shape {shape}",
            )
        return
    # A dynamic start is clamped, so the span fits if it fits with 0 as its least position.
    start = max(0, (1 - dim.size) * dim.step) if dim.start is None else dim.start
    last = start + (dim.size - 1) * dim.step
    if is_symbolic_dim(dim.size) or is_symbolic_dim(size):
        # Also for a slice of no positions, since a symbolic size may be any.
        low, high = (start, last) if dim.step > 0 else (last, start)
        inside = low >= 0 and high < size
    else:
        inside = dim.size == 0 or (0 <= start < size and 0 <= last < size)
    if dim.size < 0 or dim.step == 0 or not inside:
        raise BadIndex(
            f"a slice is out of bounds for axis {axis}",
            expected=f"positions at least 0 and less than {size}",
            found=f"start {dim.start}, size {dim.size}, step {dim.step} for shape {shape}",
        )


NumpyIndex = tuple[slice | int | np.ndarray, ...]


def numpy_index(
    indexer: Indexer, shape: Shape, operands: Sequence[np.ndarray]
) -> tuple[NumpyIndex, np.ndarray | None]:
    """Return a NumPy index with all positions clamped, and a mask of those that were in bounds.

    The mask is None if all were in bounds, or if the mode is to clip; otherwise it is a boolean
    array that broadcasts to the picks' shape.
    """
    feed = iter(operands)
    index: list[slice | int | np.ndarray] = []
    inside: np.ndarray | None = None
    for dim, size in zip(indexer.dims, shape, strict=True):
        value = next(feed) if is_dynamic(dim) else None
        if isinstance(dim, Span):
            index.append(_span_slice(dim, size, value))
        elif value is None:
            index.append(dim.at if dim.at is not None else 0)
        else:
            wide = np.asarray(value).astype(np.uint64 if value.dtype.kind == "u" else np.int64)
            if dim.wraps and wide.dtype.kind == "i":
                wide = np.where(wide < 0, wide + size, wide)
            clipped = np.clip(wide, 0, max(size - 1, 0))
            index.append(int(clipped) if clipped.ndim == 0 else clipped.astype(np.int64))
            here = clipped == wide if size else np.zeros(wide.shape, bool)
            if not here.all():
                inside = here if inside is None else inside & here
    drops = indexer.mode is Mode.DROP or 0 in shape
    return tuple(index), (inside if drops else None)


def _span_slice(dim: Span, size: int, start: np.ndarray | None) -> slice:
    if dim.size == 0:
        return slice(0, 0)
    if start is None:
        first = 0 if dim.start is None else dim.start
    else:
        reach = (dim.size - 1) * dim.step
        low, high = max(0, -reach), size - 1 - max(0, reach)
        first = min(max(int(start), low), high)
    stop = first + dim.size * dim.step
    return slice(first, stop if stop >= 0 else None, dim.step)


def read(indexer: Indexer, x: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Return a copy of the indexed part of ``x``."""
    index, inside = numpy_index(indexer, x.shape, operands)
    if inside is not None and x.size == 0:
        return np.zeros(layout(indexer, [np.shape(o) for o in operands]).shape, x.dtype)
    # With an ellipsis an element is an array: NumPy's scalars of keys would share the memory.
    part = np.array(x[(*index, ...)])
    if inside is None:
        return part
    place = layout(indexer, [np.shape(o) for o in operands])
    return np.where(_beside(inside, place), part, np.zeros((), x.dtype)).astype(x.dtype)


def write(
    indexer: Indexer,
    x: np.ndarray,
    value: np.ndarray,
    operands: Sequence[np.ndarray],
    combine: np.ufunc | None = None,
) -> None:
    """Replace the indexed part of ``x`` in place, or combine with it; duplicates all count."""
    index, inside = numpy_index(indexer, x.shape, operands)
    if inside is not None:
        if x.size == 0 or not inside.any():
            return
        place = layout(indexer, [np.shape(o) for o in operands])
        index, value = _only_inside(index, value, inside, place)
    if combine is None:
        x[index] = value
    elif any(isinstance(i, np.ndarray) for i in index):
        combine.at(x, index, value)  # type: ignore[arg-type]  # its stub knows no slices
    else:
        x[index] = combine(x[index], value)


def _beside(inside: np.ndarray, place: Layout) -> np.ndarray:
    """Return ``inside`` reshaped to broadcast against the result."""
    after = len(place.shape) - place.position - len(place.pick_shape)
    full = np.broadcast_to(inside, place.pick_shape)
    return full.reshape((1,) * place.position + place.pick_shape + (1,) * after)


def _only_inside(
    index: NumpyIndex, value: np.ndarray, inside: np.ndarray, place: Layout
) -> tuple[NumpyIndex, np.ndarray]:
    """Return the index and value of the picks in bounds, along one flat pick axis."""
    mask = np.broadcast_to(inside, place.pick_shape).reshape(-1)
    n = len(place.pick_shape)
    at = place.position
    rows = np.broadcast_to(value, place.shape)
    rows = np.moveaxis(rows, range(at, at + n), range(n))
    rows = rows.reshape((mask.size, *rows.shape[n:]))[mask]
    flat: list[slice | int | np.ndarray] = []
    for entry in index:
        if isinstance(entry, slice):
            flat.append(entry)
        else:
            flat.append(np.broadcast_to(entry, place.pick_shape).reshape(-1)[mask])
    return tuple(flat), np.moveaxis(rows, 0, at)
