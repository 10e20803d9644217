"""Indexing: reads by index, gathers, selections by condition, indices of elements."""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.assignment import fill_of
from effax.arrays.axes import no_out, plain_axis
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.creation import filled
from effax.arrays.device_array import DeviceArray
from effax.arrays.index_modes import ModeLike, mode_name
from effax.arrays.indexing import Selection, integer_positions, wrapping_pick
from effax.arrays.indexing import select as selection_of
from effax.arrays.shapes import broadcast_to, ravel, reshape
from effax.ir.dtypes import DType, family, is_key_dtype
from effax.ir.errors import BadArgument, BadIndex, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span
from effax.ir.prims import Gather
from effax.ir.prims import shape as prims
from effax.ir.prims.reduce import greatest, lowest
from effax.ir.types import Shape, array_type
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip, remainder

__all__ = [
    "take", "take_along_axis",
]  # fmt: skip

INT32 = np.dtype(np.int32)


def getitem(x: Array, index: object) -> Array:
    """Return ``x[index]`` by NumPy's rules; indices out of bounds are clamped."""
    at = selection_of(x.shape, index, Mode.CLIP, False, "an array")
    if not at.operands:
        part = _static_part(x, at.indexer)
    else:
        part = bind1(Gather(at.indexer), x, *at.operands)
    return at.outward(part)


def _static_part(x: Array, indexer: Indexer) -> Array:
    """Return the part that a static indexer selects, as slices."""
    if indexer.is_whole(x.shape):
        return x
    bounds = [_bounds(d) for d in indexer.dims]
    starts, limits, steps = (tuple(b) for b in zip(*bounds, strict=True))
    part = x
    if (starts, limits) != ((0,) * x.ndim, x.shape) or any(s != 1 for s in steps):
        strides = None if all(s == 1 for s in steps) else steps
        part = bind1(prims.Slice(starts, limits, strides), x)
    backwards = tuple(i for i, d in enumerate(indexer.dims) if isinstance(d, Span) and d.step < 0)
    if backwards:
        part = bind1(prims.Rev(backwards), part)
    picked = tuple(i for i, d in enumerate(indexer.dims) if isinstance(d, Pick))
    return bind1(prims.Squeeze(picked), part) if picked else part


def _bounds(dim: Dim) -> tuple[int, int, int]:
    """Return start, limit and stride of a static entry, in ascending order."""
    if isinstance(dim, Pick):
        at = 0 if dim.at is None else dim.at
        return at, at + 1, 1
    start = 0 if dim.start is None else dim.start
    last = start + (dim.size - 1) * dim.step
    if dim.size == 0:
        return start, start, 1
    low, high = (start, last) if dim.step > 0 else (last, start)
    return low, high + 1, abs(dim.step)


def fill_for(dtype: DType) -> bool | int | float:
    """Return the default fill value: nan, the least integer, the greatest unsigned one."""
    match family(dtype):
        case "float" | "complex":
            return float("nan")
        case "int":
            return lowest(dtype)
        case _:
            return greatest(dtype)


def read(x: Array, at: Selection, mode: str, fill_value: ArrayLike | None = None) -> Array:
    """Return the selected part of ``x``.

    ``mode`` "clip" clamps indices out of bounds; "fill" and "drop" read ``fill_value`` there.
    """
    if mode not in ("fill", "drop"):
        return bind1(Gather(at.indexer._replace(mode=Mode.CLIP)), x, *at.operands)
    part = bind1(Gather(at.indexer._replace(mode=Mode.DROP)), x, *at.operands)
    inside = _inside(x.shape, at)
    if inside is None:
        return part
    if fill_value is None and is_key_dtype(x.dtype):
        return uf.where(inside, part, filled((), WORD, array_type((), x.dtype)))
    fill = fill_for(x.dtype) if fill_value is None else fill_value
    return uf.where(inside, part, fill_of(fill, x.dtype, "the array"))


WORD: Final = 0xFFFFFFFF
"""Each word of the key that is read out of bounds."""


def _inside(shape: Shape, at: Selection) -> Array | None:
    """Return whether indices are in bounds, in the shape of the part; None if all surely are."""
    feed = iter(at.operands)
    inside: Array | None = None
    for dim, size in zip(at.indexer.dims, shape, strict=True):
        if dim[0] is not None:
            continue
        operand = next(feed)
        if isinstance(dim, Span):
            continue
        low = -size if dim.wraps else 0
        if isinstance(operand, DeviceArray):
            value = operand.numpy()
            if ((value >= low) & (value < size)).all():
                continue
        here = uf.bitwise_and(uf.greater_equal(operand, low), uf.less(operand, size))
        inside = here if inside is None else uf.bitwise_and(inside, here)
    if inside is None:
        return None
    pick_shape, position, part = at.layout
    after = len(part) - position - len(pick_shape)
    full_pick = broadcast_to(inside, pick_shape)
    return broadcast_to(reshape(full_pick, (*pick_shape, *(1,) * after)), part)


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: ModeLike = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements of ``a`` at ``indices`` along ``axis``.

    Args:
        a: array or scalar.
        indices: integer array; negative ones count from the end.
        axis: axis to index; None flattens.
        out: unsupported.
        mode: out of bounds, "fill" (default) reads ``fill_value``, "clip" clamps, "wrap" is modulo.
        unique_indices: unused promise.
        indices_are_sorted: unused promise.
        fill_value: by default nan, the least integer, or the greatest unsigned one.

    Returns:
        Array in which the axes of ``indices`` replace ``axis``.

    Raises:
        BadIndex: the axis is empty and the mode not given as "fill".
        BadArgument: an unknown mode.

    >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, 0]))
    Array([7, 5], dtype=int32)
    """
    no_out(out, "take")
    x, axis = (ravel(a), 0) if axis is None else (as_value(a, "the argument of take"), axis)
    place = plain_axis(axis, x.ndim, "take")
    at = integer_positions(indices, "the indices of take")
    mode = mode_name(mode)
    size = x.shape[place]
    if size == 0 and at.size and mode not in ("fill", "drop"):
        raise BadIndex(
            "take along an empty axis",
            "at least one element",
            str(x.type),
            'read a fill value there: `mode="fill"`',
        )
    at = remainder(at, size) if mode == "wrap" else at
    at = clip(at, 0, size - 1) if mode == "clip" else at
    pick = Pick(None) if mode in ("clip", "wrap") else wrapping_pick(at)
    dims = tuple(pick if i == place else Span(0, n) for i, n in enumerate(x.shape))
    return read(x, Selection.of(Indexer(dims), (at,)), _known_mode(mode, "take"), fill_value)


def _known_mode(mode: str | None, what: str) -> str:
    if mode not in (None, "fill", "clip", "wrap", "drop", "promise_in_bounds"):
        raise BadArgument(f"unknown mode of {what}", "fill, clip or wrap", repr(mode))
    return mode or "fill"


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: ModeLike = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Return the elements of ``arr`` at ``indices``, aligned with the other axes.

    Args:
        arr: array or scalar.
        indices: integer array of the rank of ``arr``; the other axes broadcast.
        axis: axis to index; None flattens.
        mode: as in :func:`take`; "clip" clamps what is out of bounds on either end, "one_hot" is
            the default.
        fill_value: as in :func:`take`.
        wrap_negative_indices: whether negative ones count from the end.

    Returns:
        Array of the broadcast shape of ``indices``.

    Raises:
        IllTyped: the ranks differ.

    >>> jnp.take_along_axis(jnp.array([[3, 1, 2]]), jnp.array([[1, 2, 0]]), 1)
    Array([[1, 2, 3]], dtype=int32)
    """
    x, axis = (ravel(arr), 0) if axis is None else (as_value(arr, "the argument"), axis)
    at = integer_positions(indices, "the indices of take_along_axis")
    mode = mode_name(mode)
    if at.ndim != x.ndim:
        raise IllTyped(
            "take_along_axis takes indices of the rank of the array", f"{x.ndim} axes", str(at.type)
        )
    mode = None if mode == "one_hot" else mode
    place = plain_axis(axis, x.ndim, "take_along_axis")
    lone = [1 if i == place else n for i, n in enumerate(x.shape)]
    shape = pr.broadcast_shapes([tuple(lone), at.shape], "take_along_axis")
    size = x.shape[place]
    at = remainder(at, size) if mode == "wrap" else at
    wraps = wrap_negative_indices and mode != "wrap"
    pick = wrapping_pick(at) if wraps else Pick(None)
    picks = [at if i == place else _line(n, shape, i) for i, n in enumerate(x.shape)]
    indexer = Indexer(tuple([pick if i == place else Pick(None) for i in range(x.ndim)]))
    chosen = Selection.of(indexer, tuple(picks))
    part = read(x, chosen, _known_mode(mode, "take_along_axis"), fill_value)
    return part if part.shape == shape else broadcast_to(part, shape)


def _line(size: int, shape: Shape, axis: int) -> Array:
    """Return all positions along an axis, shaped to broadcast; [0] where the axis stretches."""
    lone = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    if size != shape[axis]:
        return bind1(prims.Iota(INT32, (1,) * len(shape), axis))
    return bind1(prims.Iota(INT32, lone, axis))
