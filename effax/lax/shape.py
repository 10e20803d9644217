"""Primitives that move elements, by JAX's names: broadcast, reshape, slice, pad, iota, ..."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

import numpy as np

from effax.arrays import joining
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis, plain_shape, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shapes import broadcast_shapes
from effax.ir.errors import BadArgument
from effax.ir.prims import shape as prims
from effax.lax.elementwise import operands

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "collapse", "concatenate", "expand_dims",
    "index_in_dim", "pad", "reshape", "rev", "slice", "slice_in_dim", "split", "squeeze", "stack",
    "tile", "transpose", "unstack",
]  # fmt: skip


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return the elements of ``operand`` in another shape.

    Args:
        operand: array or scalar.
        new_sizes: sizes of the result.
        dimensions: order in which to read the axes; row-major by default.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``new_sizes``.

    Raises:
        IllTyped: the number of elements changes.

    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    x = as_value(operand, "the operand of reshape")
    sizes = plain_shape(new_sizes, "reshape")
    if dimensions is not None:
        x = sh.transpose(x, dimensions)
    made = x if x.shape == sizes else bind1(prims.Reshape(sizes), x)
    return on_device(made, out_sharding, "reshape")


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return ``operand`` repeated along new leading axes.

    Args:
        operand: array or scalar.
        sizes: sizes of the new axes.
        out_sharding: sharding of the result.

    Returns:
        Array of shape (*sizes, *operand.shape).

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = as_value(operand, "the operand of broadcast")
    shape = (*plain_shape(sizes, "broadcast"), *x.shape)
    places = range(len(shape) - x.ndim, len(shape))
    return broadcast_in_dim(x, shape, places, out_sharding=out_sharding)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: object = None,
) -> Array:
    """Return ``operand`` with its axes mapped to those of a larger shape.

    Args:
        operand: array or scalar.
        shape: sizes of the result.
        broadcast_dimensions: result axis of each operand axis; size 1 repeats.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: sizes do not fit.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 2), (0,))
    Array([[1, 1],
           [2, 2]], dtype=int32)
    """
    (x,) = operands("broadcast_in_dim", operand)
    sizes, dims = plain_shape(shape, "broadcast_in_dim"), tuple(broadcast_dimensions)
    if isinstance(x, Array) and 1 in x.shape:
        x, dims = _without_ones(x, sizes, dims)
    made = bind1(prims.BroadcastInDim(sizes, dims), x)
    return on_device(made, out_sharding, "broadcast_in_dim")


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Return ``arr`` broadcast to the shape of another array, by NumPy's rules.

    Args:
        arr: array or scalar.
        like_arr: array of the shape wanted.

    Returns:
        Array of the dtype of ``arr``, shape of ``like_arr``.

    Raises:
        IllTyped: ``arr`` does not broadcast to that shape.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.ones((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    return sh.broadcast_to(arr, as_value(like_arr, "the second argument of broadcast_like").shape)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Return ``x`` with leading axes of size 1, ``rank`` axes in all.

    Args:
        x: array or scalar.
        rank: number of axes.

    Returns:
        Array of ``rank`` axes.

    Raises:
        BadArgument: ``x`` has more axes.

    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 2)
    Array([[1, 2]], dtype=int32)
    """
    value = as_value(x, "the operand of broadcast_to_rank")
    more = static_int(rank, "the rank of broadcast_to_rank") - value.ndim
    if more < 0:
        raise BadArgument("broadcast_to_rank removes no axes", f"at least {value.ndim}", str(rank))
    return expand_dims(value, range(more))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Return ``operand`` with axes permuted: result axis ``i`` is ``permutation[i]``.

    Args:
        operand: array or scalar.
        permutation: permutation of the axes.

    Returns:
        Array of the dtype of ``operand``.

    Raises:
        BadArgument: ``permutation`` is not a permutation.

    >>> lax.transpose(jnp.array([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return sh.transpose(operand, permutation)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``array`` without axes of size 1.

    Args:
        array: array or scalar.
        dimensions: axes to remove.

    Returns:
        Array of the elements of ``array``.

    Raises:
        BadArgument: the size of an axis is not 1.

    >>> lax.squeeze(jnp.ones((1, 2)), (0,))
    Array([1., 1.], dtype=float32)
    """
    return sh.squeeze(array, tuple(dimensions))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``array`` with new axes of size 1.

    Args:
        array: array or scalar.
        dimensions: positions of the new axes in the result.

    Returns:
        Array of the elements of ``array``.

    >>> lax.expand_dims(jnp.arange(2), (0,))
    Array([[0, 1]], dtype=int32)
    """
    return sh.expand_dims(array, dimensions)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Return ``operand`` with axes start to stop merged into one.

    Args:
        operand: array or scalar.
        start_dimension: first axis to merge.
        stop_dimension: axis after the last to merge; None for all.

    Returns:
        Array of the elements of ``operand``.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = as_value(operand, "the operand of collapse")
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    merged = math.prod(x.shape[start:stop])
    return reshape(x, (*x.shape[:start], merged, *x.shape[stop:]))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``operand`` reversed along axes.

    Args:
        operand: array or scalar.
        dimensions: axes to reverse.

    Returns:
        Array of the shape and dtype of ``operand``.

    >>> lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return sh.flip(operand, tuple(dimensions))


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Return the operands joined along an axis.

    Args:
        operands: arrays of one dtype, of one shape but for ``dimension``.
        dimension: axis to join along.

    Returns:
        Array whose size along ``dimension`` is the sum of sizes.

    Raises:
        BadArgument: there are no operands.
        IllTyped: shapes or dtypes differ.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    values = [as_value(x, f"operand {i} of concatenate") for i, x in enumerate(operands)]
    if not values:
        raise BadArgument("concatenate of no arrays", "at least one array", "none")
    axis = plain_axis(dimension, values[0].ndim, "concatenate")
    return bind1(prims.Concatenate(axis), *values)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Return the operands joined along a new axis.

    Args:
        operands: arrays of one shape.
        axis: position of the new axis.

    Returns:
        Array with a new axis of size ``len(operands)``.

    Raises:
        IllTyped: shapes differ.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return joining.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of ``x`` along an axis, which they lack.

    Args:
        x: array or scalar.
        axis: axis to split along.

    Returns:
        Tuple of arrays.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    return joining.unstack(x, axis=axis)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Return parts of the given sizes.

    Args:
        operand: array or scalar.
        sizes: sizes of the parts; their sum is the size of the axis.
        axis: axis to split along.

    Returns:
        List of arrays.

    Raises:
        BadArgument: the sizes do not cover the axis.

    >>> lax.split(jnp.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    x = as_value(operand, "the operand of split")
    place = plain_axis(axis, x.ndim, "split")
    if sum(sizes) != x.shape[place]:
        raise BadArgument(
            "the sizes of split do not cover the axis",
            f"sizes that sum to {x.shape[place]}",
            str(sizes),
        )
    ends = np.cumsum(np.asarray(sizes, int))
    return [sh.slice_along(x, place, int(e) - n, int(e)) for e, n in zip(ends, sizes, strict=True)]


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Return ``operand`` repeated as a whole along each axis.

    Args:
        operand: array or scalar.
        reps: number of repetitions per axis.

    Returns:
        Array whose sizes are products of those of ``operand`` and ``reps``.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    return joining.tile(operand, tuple(reps))


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Return ``operand`` with elements added at the ends of axes and between elements.

    Args:
        operand: array or scalar.
        padding_value: scalar of the same dtype.
        padding_config: (low, high, interior) per axis; negative low and high crop.

    Returns:
        Array of the dtype of ``operand``.

    Raises:
        IllTyped: dtypes differ.

    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 0, 1)])
    Array([0, 1, 0, 2], dtype=int32)
    """
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
    """Return ``operand[start:limit:stride]`` along each axis, within bounds.

    Args:
        operand: array or scalar.
        start_indices: first index per axis.
        limit_indices: end index per axis, exclusive.
        strides: stride per axis, 1 by default.

    Returns:
        Array of the dtype of ``operand``.

    Raises:
        IllTyped: the slice leaves the bounds.

    >>> lax.slice(jnp.arange(5), (1,), (5,), (2,))
    Array([1, 3], dtype=int32)
    """
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
    """Return ``operand[start:limit:stride]`` along one axis.

    Args:
        operand: array or scalar.
        start_index: first index; negative ones count from the end, None is 0.
        limit_index: end index, exclusive; None is the size.
        stride: stride.
        axis: axis to slice.

    Returns:
        Array of the dtype of ``operand``.

    Raises:
        IllTyped: the slice leaves the bounds.

    >>> lax.slice_in_dim(jnp.arange(5), 1, -1)
    Array([1, 2, 3], dtype=int32)
    """
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
    """Return the slice of ``operand`` at a static index along an axis.

    Args:
        operand: array or scalar.
        index: Python int; negative ones count from the end.
        axis: axis to index.
        keepdims: whether the axis remains with size 1.

    Returns:
        Array of the dtype of ``operand``.

    Raises:
        BadArgument: the index is out of bounds.

    >>> lax.index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    x = as_value(operand, "the operand of index_in_dim")
    place = plain_axis(axis, x.ndim, "index_in_dim")
    at = plain_axis(index, x.shape[place], "index_in_dim")
    return sh.slice_along(x, place, at, at + 1, drop=not keepdims)


slice = slice_


def _without_ones(
    x: Array, shape: tuple[int, ...], places: tuple[int, ...]
) -> tuple[Array, tuple[int, ...]]:
    """Return the operand without axes of size 1 that repeat, and the places of the others."""
    if len(places) != x.ndim or any(not 0 <= i < len(shape) for i in places):
        return x, places
    repeats = [n == 1 and shape[i] != 1 for n, i in zip(x.shape, places, strict=True)]
    if not any(repeats):
        return x, places
    axes = [axis for axis, repeat in enumerate(repeats) if repeat]
    kept = tuple(i for i, repeat in zip(places, repeats, strict=True) if not repeat)
    return sh.squeeze(x, axes), kept
