"""Arrays with slices removed, inserted, or repeated up to a shape; arrays made of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis, static_int
from effax.arrays.conversion import as_value
from effax.arrays.creation import zeros
from effax.arrays.joining import concatenate
from effax.arrays.shapes import (
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
    taken_along,
)
from effax.arrays.traced_array import TracedArray
from effax.ir.errors import BadArgument, BadIndex, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.index import take
from effax.numpy.join import split
from effax.numpy.positions import nonzero
from effax.numpy.ranges import arange

__all__ = [
    "Blocks", "block", "delete", "dsplit", "insert", "resize", "rollaxis",
]  # fmt: skip

Blocks = ArrayLike | Sequence["Blocks"]
"""An array, or nested lists of arrays."""


def _depth(arrays: Blocks) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise BadArgument("block expects arrays", "at least one in each list", "an empty list")
    depths = {_depth(part) for part in arrays}
    if len(depths) > 1:
        raise BadArgument(
            "lists of block differ in depth", "one depth", ", ".join(map(str, sorted(depths)))
        )
    return 1 + depths.pop()


def block(arrays: Blocks) -> Array:
    """Return the array made of blocks: innermost lists are joined along the last axis.

    Args:
        arrays: an array, or lists of lists of arrays, all of one depth; lists of depth k are joined
            along the axis k from the end.

    Returns:
        Joined array.

    Raises:
        BadArgument: a list is empty, or lists differ in depth.
        IllTyped: sizes of blocks do not fit.

    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 1))], [jnp.zeros((1, 1)), jnp.eye(1)]])
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    depth = _depth(arrays)
    return _joined(arrays, depth, max(depth, _rank(arrays)))


def _rank(arrays: Blocks) -> int:
    if isinstance(arrays, list):
        return max(_rank(part) for part in arrays)
    return as_value(arrays, "a block").ndim


def _joined(arrays: Blocks, depth: int, rank: int) -> Array:
    if isinstance(arrays, list):
        return concatenate([_joined(part, depth - 1, rank) for part in arrays], -depth)
    value = as_value(arrays, "a block")
    return reshape(value, (1,) * (rank - value.ndim) + value.shape)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split along the third axis; see :func:`split`.

    Args:
        ary: array of at least 3 axes.
        indices_or_sections: number of parts, or indices where parts begin.

    Returns:
        List of arrays.

    Raises:
        IllTyped: there is no third axis.

    >>> [x.shape for x in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    x = as_value(ary, "the argument of dsplit")
    if x.ndim < 3:
        raise IllTyped("dsplit splits the third axis", "at least 3 axes", str(x.type))
    return split(x, indices_or_sections, 2)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return the array with an axis moved before another one; :func:`moveaxis` is clearer.

    Args:
        a: array.
        axis: axis to move.
        start: position before which it comes, in the array as it is.

    Returns:
        Array with axes permuted.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_value(a, "the argument of rollaxis")
    place = plain_axis(axis, x.ndim, "rollaxis")
    before = static_int(start, "the start of rollaxis")
    if not -x.ndim <= before <= x.ndim:
        raise BadArgument("rollaxis has no such position", f"at most {x.ndim}", str(before))
    before += x.ndim if before < 0 else 0
    return moveaxis(x, place, before - (before > place))


def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array:
    """Return an array of a shape, with the elements of another repeated in their order.

    Args:
        a: array or scalar.
        new_shape: shape of the result.

    Returns:
        Array of this shape, of zeros if ``a`` has no elements.

    Raises:
        BadArgument: a size is negative.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    x = ravel(as_value(a, "the argument of resize"))
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise BadArgument("resize expects sizes", "nonnegative numbers", str(shape))
    size = math.prod(shape)
    if not x.size:
        return zeros(shape, x.dtype)
    copies = broadcast_to(x, (-(-size // x.size), x.size))
    return reshape(ravel(copies)[:size], shape)


def _known(obj: object, size: int, what: str, last: int) -> np.ndarray:
    """Return positions along an axis of a size, given by known integers, a mask or a slice."""
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    given = obj.numpy() if isinstance(obj, Array) else np.asarray(obj)
    if given.dtype == bool:
        if given.shape != (size,):
            raise IllTyped(
                f"a mask of {what} expects one axis", f"shape ({size},)", str(given.shape)
            )
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, int)
    if given.dtype.kind not in "iu" or (given.ndim > 1 and what == "insert"):
        raise IllTyped(
            f"{what} expects integers, a mask or a slice", found=f"{given.dtype}{given.shape}"
        )
    if not ((-size <= given) & (given <= last)).all():
        raise BadIndex(f"an index of {what} is out of bounds", f"at most {last}", str(given)[:60])
    given = given.ravel() if what == "delete" else given
    return np.where(given < 0, given + size, given)


def delete(
    arr: ArrayLike,
    obj: ArrayLike | Sequence[int] | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Return the array without some slices along an axis.

    Args:
        arr: array.
        obj: positions to leave out: integers, a mask, or a slice, of known values.
        axis: axis of the slices; None flattens.
        assume_unique_indices: whether all integers are different, which may be traced then.

    Returns:
        Array with fewer slices.

    Raises:
        ConcretizationError: indices are traced.
        BadIndex: an index is out of bounds.

    >>> jnp.delete(jnp.array([1, 2, 3, 4]), jnp.array([0, -1]))
    Array([2, 3], dtype=int32)
    """
    x = as_value(arr, "the array of delete")
    x, place = (ravel(x), 0) if axis is None else (x, plain_axis(axis, x.ndim, "delete"))
    size = x.shape[place]
    if assume_unique_indices and isinstance(obj, TracedArray):
        left = zeros(size, bool).at[obj].set(True)
        (rest,) = nonzero(uf.invert(left), size=max(size - obj.size, 0))
        return take(x, rest, place)
    kept = np.delete(np.arange(size), _known(obj, size, "delete", size - 1))
    return taken_along(x, place, kept)


def insert(
    arr: ArrayLike,
    obj: ArrayLike | Sequence[int] | slice,
    values: ArrayLike,
    axis: int | None = None,
) -> Array:
    """Return the array with slices inserted before positions along an axis.

    Args:
        arr: array.
        obj: positions in ``arr``: integers, a mask, or a slice, of known values; or one integer.
        values: what to insert, which broadcasts to the slices; in the dtype of ``arr``.
        axis: axis of the slices; None flattens.

    Returns:
        Array with more slices.

    Raises:
        ConcretizationError: several indices are traced.
        BadIndex: a known index is out of bounds.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    x = as_value(arr, "the array of insert")
    x, place = (ravel(x), 0) if axis is None else (x, plain_axis(axis, x.ndim, "insert"))
    size = x.shape[place]
    new = uf.astype(as_value(values, "the values of insert"), x.dtype)
    new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if isinstance(obj, TracedArray) and not obj.ndim:
        return _inserted_at(x, obj, moveaxis(new, 0, place), place)
    at = _known(obj, size, "insert", size)
    if at.size == 1:
        # All slices of the values come to a single position.
        new = new if at.ndim else moveaxis(new, 0, place)
        at = np.repeat(at.ravel(), new.shape[place])
    n = len(at)
    shape = tuple(n if i == place else m for i, m in enumerate(x.shape))
    joined = concatenate([x, broadcast_to(new, shape)], place)
    return taken_along(joined, place, np.insert(np.arange(size), at, size + np.arange(n)))


def _inserted_at(x: Array, at: Array, new: Array, axis: int) -> Array:
    """Return the array with slices inserted before one position, which may be traced."""
    size, n = x.shape[axis], new.shape[axis]
    shape = tuple(n if i == axis else m for i, m in enumerate(x.shape))
    joined = concatenate([x, broadcast_to(new, shape)], axis)
    first = uf.where(uf.less(at, 0), uf.add(at, size), at)
    place = arange(size + n)
    moved = uf.where(place < first + n, size + place - first, place - n)
    return take(joined, uf.where(place < first, place, moved), axis)
