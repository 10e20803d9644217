"""Selections of the smallest and largest elements."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis, static_int
from effax.arrays.conversion import as_value
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import slice_along
from effax.ir.dtypes import INT32, as_dtype, is_complex
from effax.ir.errors import BadArgument
from effax.lax.reduce import top_k as greatest
from effax.numpy import ufuncs as uf
from effax.numpy.index import take_along_axis
from effax.numpy.sorting import argsort, sort

__all__ = [
    "argpartition", "partition", "sort_complex", "top_k",
]  # fmt: skip


def _place(x: Array, kth: int, axis: int, what: str) -> int:
    place = plain_axis(axis, x.ndim, what)
    k, size = static_int(kth, f"kth of {what}"), x.shape[place]
    if not -size <= k < size:
        raise BadArgument(f"kth of {what} is out of bounds", f"less than {size}", str(k))
    return place


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the array with smaller elements before the k-th one along an axis, larger ones after.

    The order on both sides is undefined; it is that of a sorted array.

    Args:
        a: array.
        kth: position at which the element is in its place.
        axis: axis.

    Returns:
        Array of the shape of ``a``.

    Raises:
        BadArgument: the position is out of bounds.

    >>> jnp.partition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    x = as_value(a, "the argument of partition")
    return sort(x, _place(x, kth, axis, "partition"))


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array, see :func:`partition`.

    Args:
        a: array.
        kth: position at which the element is in its place.
        axis: axis.

    Returns:
        Array of integers of the shape of ``a``.

    Raises:
        BadArgument: the position is out of bounds.

    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    x = as_value(a, "the argument of argpartition")
    return argsort(x, _place(x, kth, axis, "argpartition"))


def sort_complex(a: ArrayLike) -> Array:
    """Return the elements sorted along the last axis, as complex numbers.

    Args:
        a: array.

    Returns:
        Complex array of the shape of ``a``.

    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = sort(as_value(a, "the argument of sort_complex"))
    if is_complex(x.dtype):
        return x
    wide = x.dtype.itemsize > 4
    return uf.astype(x, default_dtype(complex) if wide else as_dtype("complex64"))


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """Return the ``k`` largest or smallest elements along an axis, and their indices.

    nan counts as largest, and of equal elements the first comes first.

    Args:
        a: array of no complex dtype.
        k: number of elements.
        axis: axis to select along.
        mode: "largest", in descending order, or "smallest", in ascending order.
        sorted: ignored; the elements are always in order.

    Returns:
        Pair of arrays with size ``k`` along ``axis``; indices are int32.

    Raises:
        BadArgument: ``k`` is out of range, or an unknown mode.

    >>> jnp.top_k(jnp.array([1, 5, 3]), 2, mode="smallest")
    (Array([1, 3], dtype=int32), Array([0, 2], dtype=int32))
    """
    x = as_value(a, "the argument of top_k")
    if mode == "largest":
        return greatest(x, k, axis=axis)
    if mode != "smallest":
        raise BadArgument("unknown mode of top_k", "'largest' or 'smallest'", repr(mode))
    place = plain_axis(axis, x.ndim, "top_k")
    if not 0 <= static_int(k, "k of top_k") <= x.shape[place]:
        raise BadArgument("`k` of top_k is out of range", f"0 to {x.shape[place]}", str(k))
    positions = slice_along(uf.astype(argsort(x, place), INT32), place, 0, k)
    return take_along_axis(x, positions, place), positions
