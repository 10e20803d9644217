"""Primitives that move elements, under JAX's names: broadcast, reshape, slice, pad, iota, ..."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DTypeLike, as_value
from effax.ir.errors import BadArgument
from effax.ir.prims import shape as prims
from effax.ir.types import Shape
from effax.lax.elementwise import operands
from effax.numpy import creation, join
from effax.numpy import shapes as sh
from effax.numpy.axes import plain_axis, plain_shape, static_int

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_shapes", "broadcasted_iota", "collapse",
    "concatenate", "expand_dims", "full", "full_like", "index_in_dim", "iota", "pad", "reshape",
    "rev", "slice", "slice_in_dim", "split", "squeeze", "stack", "tile", "transpose", "unstack",
    "zeros_like", "zeros_like_array",
]  # fmt: skip


def reshape(
    operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Array:
    """The elements in another shape, read in the order of ``dimensions``."""
    x = as_value(operand, "the operand of reshape")
    sizes = plain_shape(new_sizes, "reshape")
    if dimensions is not None:
        x = sh.transpose(x, dimensions)
    return x if x.shape == sizes else bind1(prims.Reshape(sizes), x)


def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """The operand repeated along new leading axes of these sizes."""
    x = as_value(operand, "the operand of broadcast")
    shape = (*plain_shape(sizes, "broadcast"), *x.shape)
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Array:
    """Operand axis ``i`` becomes result axis ``broadcast_dimensions[i]``; size 1 repeats."""
    (x,) = operands("broadcast_in_dim", operand)
    sizes, dims = plain_shape(shape, "broadcast_in_dim"), tuple(broadcast_dimensions)
    return bind1(prims.BroadcastInDim(sizes, dims), x)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all broadcast."""
    return sh.broadcast_shapes(*shapes)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Result axis ``i`` is operand axis ``permutation[i]``."""
    return sh.transpose(operand, permutation)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The operand without these axes of size 1."""
    return sh.squeeze(array, tuple(dimensions))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The operand with new axes of size 1 at these places of the result."""
    return sh.expand_dims(array, dimensions)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The axes from start to stop made one."""
    x = as_value(operand, "the operand of collapse")
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    merged = math.prod(x.shape[start:stop])
    return reshape(x, (*x.shape[:start], merged, *x.shape[stop:]))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The operand with these axes reversed."""
    return sh.flip(operand, tuple(dimensions))


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """The operands, of one dtype, one after the other along an axis."""
    values = [as_value(x, f"operand {i} of concatenate") for i, x in enumerate(operands)]
    if not values:
        raise BadArgument("concatenate of no arrays", "at least one array", "none")
    axis = plain_axis(dimension, values[0].ndim, "concatenate")
    return bind1(prims.Concatenate(axis), *values)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """The operands, of one shape, along a new axis."""
    return join.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The parts along an axis, each without it."""
    return join.unstack(x, axis=axis)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Parts of these sizes along an axis."""
    x = as_value(operand, "the operand of split")
    place = plain_axis(axis, x.ndim, "split")
    if sum(sizes) != x.shape[place]:
        raise BadArgument(
            "split leaves something", f"sizes that sum to {x.shape[place]}", str(sizes)
        )
    ends = np.cumsum(np.asarray(sizes, int))
    return [sh.slice_along(x, place, int(e) - n, int(e)) for e, n in zip(ends, sizes, strict=True)]


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The array laid side by side so many times along each axis."""
    return join.tile(operand, tuple(reps))


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """``(low, high, interior)`` elements of padding an axis; negative ones crop."""
    x, value = operands("pad", operand, padding_value)
    config = tuple(
        [
            (static_int(a, "pad"), static_int(b, "pad"), static_int(c, "pad"))
            for a, b, c in padding_config
        ]
    )
    return bind1(prims.Pad(config), x, value)


def slice_(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """``x[start:limit:stride]`` an axis, inside of the bounds."""
    x = as_value(operand, "the operand of slice")
    by = None if strides is None else tuple(strides)
    return bind1(prims.Slice(tuple(start_indices), tuple(limit_indices), by), x)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """``x[start:limit:stride]`` along an axis; negative positions count from the end."""
    x = as_value(operand, "the operand of slice_in_dim")
    place = plain_axis(axis, x.ndim, "slice_in_dim")
    size = x.shape[place]
    start, limit = start_index or 0, size if limit_index is None else limit_index
    start, limit = start + size * (start < 0), limit + size * (limit < 0)
    strides = [1] * x.ndim
    starts, limits = [0] * x.ndim, list(x.shape)
    starts[place], limits[place], strides[place] = start, limit, stride
    return slice_(x, starts, limits, strides if stride != 1 else None)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The element at a static position along an axis."""
    x = as_value(operand, "the operand of index_in_dim")
    place = plain_axis(axis, x.ndim, "index_in_dim")
    at = plain_axis(index, x.shape[place], "index_in_dim")
    return sh.slice_along(x, place, at, at + 1, drop=not keepdims)


def iota(dtype: DTypeLike, size: int) -> Array:
    """``0, 1, 2, ...``."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """``0, 1, 2, ...`` along an axis."""
    sizes = plain_shape(shape, "broadcasted_iota")
    return bind1(prims.Iota(allowed(dtype), sizes, plain_axis(dimension, len(sizes), "iota")))


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A scalar everywhere."""
    return creation.full(shape, fill_value, dtype)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
) -> Array:
    """A scalar everywhere, in the shape and dtype of ``x``."""
    return creation.full_like(x, fill_value, dtype, shape)


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of the shape and dtype of ``x``."""
    return creation.zeros_like(x)


def zeros_like(x: ArrayLike) -> Array:
    """Zeros of the shape and dtype of ``x``."""
    return creation.zeros_like(x)


slice = slice_
