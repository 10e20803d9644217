"""Concatenation, splitting, repetition and rotation of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axis, sequence_of, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.dynamic_span import ds
from effax.arrays.joining import Arrays, concatenate, listed, stack, tile, unstack
from effax.arrays.placed import on_device
from effax.arrays.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
    slice_along,
    taken_along,
)
from effax.ir.dtypes import INT32
from effax.ir.errors import BadArgument
from effax.ir.prims import Iota
from effax.ir.types import array_type, check_size
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import remainder
from effax.numpy.index import take
from effax.numpy.reduce import cumsum
from effax.numpy.sorting import searchsorted

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dstack", "hsplit",
    "hstack", "repeat", "roll", "split", "stack", "tile", "unstack", "vsplit", "vstack",
]  # fmt: skip


concat = concatenate


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Return the arrays joined along the second axis, vectors along the first.

    Args:
        tup: sequence of arrays, or an array split along its first axis.
        dtype: dtype of the result, by promotion by default.

    Returns:
        Joined array.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    values = [atleast_1d(x) for x in listed(tup, "hstack")]
    return concatenate(values, 0 if values[0].ndim == 1 else 1, dtype)


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Return the arrays joined along the first axis; vectors are rows.

    Args:
        tup: sequence of arrays, or an array split along its first axis.
        dtype: dtype of the result, by promotion by default.

    Returns:
        Joined array of at least 2 axes.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return concatenate([atleast_2d(x) for x in listed(tup, "vstack")], 0, dtype)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Return the arrays joined along the third axis.

    Args:
        tup: sequence of arrays, or an array split along its first axis.
        dtype: dtype of the result, by promotion by default.

    Returns:
        Joined array of at least 3 axes.

    >>> jnp.dstack([jnp.ones((2, 3)), jnp.ones((2, 3))]).shape
    (2, 3, 2)
    """
    return concatenate([atleast_3d(x) for x in listed(tup, "dstack")], 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Return the arrays joined along the second axis; vectors are columns.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    values = listed(tup, "column_stack")
    return concatenate([expand_dims(atleast_1d(x), 1) if x.ndim < 2 else x for x in values], 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Return ``values`` joined after ``arr``.

    Args:
        arr: array or scalar.
        values: array or scalar to append.
        axis: axis to join along; None flattens both.

    Returns:
        Joined array.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([arr, values], axis)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return equal parts of ``ary`` along ``axis``, or the parts between indices.

    Args:
        ary: array or scalar.
        indices_or_sections: number of parts, or the indices to split at.
        axis: axis to split along.

    Returns:
        List of arrays.

    Raises:
        BadArgument: the number does not divide the size.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    x = as_value(ary, "the argument of split")
    place = plain_axis(axis, x.ndim, "split")
    if not isinstance(indices_or_sections, Sequence) and not pr.shape_of(indices_or_sections):
        parts = static_int(indices_or_sections, "the number of parts of split")
        if parts < 1 or x.shape[place] % parts:
            raise BadArgument(
                "split takes a number that divides the size",
                expected=f"a number that divides {x.shape[place]}",
                found=str(parts),
                remedy="use `array_split`",
            )
    return array_split(x, indices_or_sections, axis)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return nearly equal parts of ``ary`` along ``axis``, or the parts between indices.

    Args:
        ary: array or scalar.
        indices_or_sections: number of parts, or the indices to split at.
        axis: axis to split along.

    Returns:
        List of arrays; the first ones are one element longer where needed.

    Raises:
        BadArgument: the number is below 1.

    >>> jnp.array_split(jnp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    x = as_value(ary, "the argument of array_split")
    place = plain_axis(axis, x.ndim, "array_split")
    size = x.shape[place]
    if not isinstance(indices_or_sections, Sequence) and not pr.shape_of(indices_or_sections):
        parts = static_int(indices_or_sections, "the number of parts of array_split")
        if parts < 1:
            raise BadArgument(
                "array_split takes a positive number of parts", "a number of at least 1", str(parts)
            )
        each, longer = divmod(size, parts)
        ends = [i * each + min(i, longer) for i in range(parts + 1)]
        return [slice_along(x, place, a, b) for a, b in pairwise(ends)]
    cuts = [int(i) for i in np.asarray(indices_or_sections)]
    spans = [slice(a, b).indices(size) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    return [slice_along(x, place, a, max(a, b)) for a, b, _ in spans]


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split along the second axis, a vector along the first; see :func:`split`.

    Args:
        ary: array or scalar.
        indices_or_sections: number of parts, or the indices to split at.

    Returns:
        List of arrays.

    >>> jnp.hsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1],
           [3]], dtype=int32), Array([[2],
           [4]], dtype=int32)]
    """
    x = as_value(ary, "the argument of hsplit")
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split along the first axis; see :func:`split`.

    Args:
        ary: array or scalar.
        indices_or_sections: number of parts, or the indices to split at.

    Returns:
        List of arrays.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return split(ary, indices_or_sections, 0)


def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: object = None,
) -> Array:
    """Return ``a`` with each element repeated along ``axis``.

    Args:
        a: array or scalar.
        repeats: number of repetitions, or one number per element.
        axis: axis to repeat along; None flattens.
        total_repeat_length: size of the result, padded with the last element or truncated.
        out_sharding: sharding of the result.

    Returns:
        Array of the dtype of ``a``.

    Raises:
        ConcretizationError: ``repeats`` is traced and there is no ``total_repeat_length``.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    return on_device(_repeated(a, repeats, axis, total_repeat_length), out_sharding, "repeat")


def _repeated(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None,
    total_repeat_length: int | None,
) -> Array:
    x = as_value(a, "the argument of repeat")
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    place = plain_axis(axis, x.ndim, "repeat")
    size = x.shape[place]
    if total_repeat_length is None and isinstance(repeats, int | np.integer):
        widened = expand_dims(x, place + 1)
        shape = (*x.shape[: place + 1], int(repeats), *x.shape[place + 1 :])
        merged = (*x.shape[:place], size * int(repeats), *x.shape[place + 1 :])
        return reshape(broadcast_to(widened, shape), merged)
    counts = as_value(np.asarray(repeats) if isinstance(repeats, Sequence) else repeats)
    if isinstance(counts, DeviceArray):
        positions = np.repeat(np.arange(size), counts.numpy())
        if total_repeat_length is not None:
            check_size(array_type((total_repeat_length,), positions.dtype))
            fill = positions[-1] if len(positions) else max(size - 1, 0)
            missing = max(0, total_repeat_length - len(positions))
            positions = np.append(positions, [fill] * missing)[:total_repeat_length]
        return taken_along(x, place, positions)
    if total_repeat_length is None:
        counts.numpy()
    return _repeat_traced(x, counts, place, static_int(total_repeat_length, "total_repeat_length"))


def _repeat_traced(x: Array, counts: Array, axis: int, total: int) -> Array:
    ends = cumsum(broadcast_to(counts, (x.shape[axis],)))
    at = searchsorted(ends, bind1(Iota(INT32, (total,), 0)), side="right")
    return take(x, at, axis, mode="clip")


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """Return ``a`` with the elements rotated along ``axis``.

    Args:
        a: array or scalar.
        shift: number of places, or one number per axis.
        axis: axis or axes to rotate along; None flattens meanwhile.

    Returns:
        Array of the shape and dtype of ``a``.

    Raises:
        BadArgument: the numbers of shifts and axes differ.

    >>> jnp.roll(jnp.array([1, 2, 3]), 1)
    Array([3, 1, 2], dtype=int32)
    """
    x = as_value(a, "the argument of roll")
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [plain_axis(i, x.ndim, "roll") for i in sequence_of(axis)]
    shifts = _shifts(shift, len(axes))
    for place, by in zip(axes, shifts, strict=True):
        x = _rolled(x, by, place)
    return x


def _shifts(shift: ArrayLike | Sequence[int], count: int) -> list[ArrayLike]:
    given: list[ArrayLike]
    if isinstance(shift, Sequence):
        given = list(shift)
    else:
        given = list(unstack(shift)) if pr.shape_of(shift) else [shift]
    if len(given) == 1:
        given = given * count
    if len(given) != count:
        raise BadArgument("roll takes one shift an axis", f"{count} shifts", str(len(given)))
    return given


def _rolled(x: Array, shift: ArrayLike, axis: int) -> Array:
    size = x.shape[axis]
    if size == 0:
        return x
    if isinstance(shift, Array) and not isinstance(shift, DeviceArray):
        twice = concatenate([x, x], axis)
        start = remainder(uf.negative(shift), size)
        return twice[(*[slice(None)] * axis, ds(start, size))]
    by = static_int(shift, "the shift of roll") % size
    if by == 0:
        return x
    parts = slice_along(x, axis, size - by, size), slice_along(x, axis, 0, size - by)
    return concatenate(parts, axis)
