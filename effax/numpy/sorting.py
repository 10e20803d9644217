"""Sorting, order statistics, binary search and sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.assignment import fill_of
from effax.arrays.axes import nonnegative, plain_axis
from effax.arrays.binding import bind
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.creation import full, zeros
from effax.arrays.joining import concatenate
from effax.arrays.shapes import (
    broadcast_to,
    expand_dims,
    flip,
    moveaxis,
    ravel,
    reshape,
    slice_along,
)
from effax.ir.dtypes import family, is_complex, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota, Sort
from effax.lax.whiles import fori_loop
from effax.numpy import ufuncs as uf
from effax.numpy.index import take
from effax.numpy.predicates import isnan
from effax.numpy.reduce import any as any_
from effax.numpy.reduce import cumsum, sum

__all__ = [
    "argsort", "diff", "digitize", "isin", "lexsort", "searchsorted", "sort", "unique",
]  # fmt: skip


def _sorted(axis: int, keys: Sequence[Array], *others: Array) -> list[Array]:
    """Sort by keys; the first results are the keys, split where they are complex."""
    parts = [part for key in keys for part in _keys(key)]
    return cast("list[Array]", bind(Sort(axis, len(parts)), *parts, *others))


def _positions(x: Array, axis: int) -> Array:
    return cast(Array, bind(Iota(allowed(int), x.shape, axis))[0])


def _along(a: ArrayLike, axis: int | None, what: str) -> tuple[Array, int]:
    x = as_value(a, f"the argument of {what}")
    if axis is None:
        return ravel(x), 0
    return x, plain_axis(axis, x.ndim, what)


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return ``a`` sorted in ascending order along ``axis``; nan sorts last.

    Args:
        a: array or scalar.
        axis: axis to sort along; None sorts the flattened array.
        kind: unsupported, must be None.
        order: unsupported, must be None.
        stable: ignored; the sort is always stable.
        descending: whether to reverse the order.

    Returns:
        Array of the shape and dtype of ``a``, or 1-D where ``axis`` is None.

    Raises:
        BadArgument: ``kind`` or ``order`` is not None.

    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _plain_sort(kind, order, "sort")
    x, place = _along(a, axis, "sort")
    made = _sorted(place, [x], *([x] if is_complex(x.dtype) else []))[-1]
    return flip(made, place) if descending else made


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the indices that sort ``a`` along ``axis``; equal elements keep their order.

    Args:
        a: array or scalar.
        axis: axis to sort along; None sorts the flattened array.
        kind: unsupported, must be None.
        order: unsupported, must be None.
        stable: ignored; the sort is always stable.
        descending: whether to sort in descending order.
        dtype: integer dtype of the result.

    Returns:
        Integer array of the shape of ``a``, or 1-D where ``axis`` is None.

    Raises:
        BadArgument: ``kind`` or ``order`` is not None.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _plain_sort(kind, order, "argsort")
    x, place = _along(a, axis, "argsort")
    at = _positions(x, place)
    if not descending:
        found = _sorted(place, [x], at)[-1]
    else:
        # Reversed before and after, so that equal elements keep their order.
        found = flip(_sorted(place, [flip(x, place)], flip(at, place))[-1], place)
    return found if dtype is None else uf.astype(found, dtype)


def _plain_sort(kind: object, order: object, what: str) -> None:
    if kind is not None or order is not None:
        raise BadArgument(
            f"{what} always sorts stably", "kind=None, order=None", f"{kind!r}, {order!r}"
        )


def lexsort(keys: Sequence[ArrayLike] | Array, axis: int = -1, *, batch_size: int = 16) -> Array:
    """Return the indices that sort by the last key, ties by the one before, and so on.

    Args:
        keys: sequence of arrays of one shape, or an array split along its first axis.
        axis: axis to sort along.
        batch_size: ignored; all keys are sorted at once.

    Returns:
        Integer array of the shape of a key.

    Raises:
        BadArgument: ``keys`` is empty.

    >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([1, 0, 1])))
    Array([1, 2, 0], dtype=int32)
    """
    values = [as_value(k, f"key {i} of lexsort") for i, k in enumerate(keys)]
    if not values:
        raise BadArgument("expected keys for lexsort", "at least one", "none")
    if not values[0].ndim and axis in (0, -1):
        return as_value(np.zeros((), allowed(int)))
    place = plain_axis(axis, values[0].ndim, "lexsort")
    return _sorted(place, values[::-1], _positions(values[0], place))[-1]


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Return the insertion points of ``v`` in the sorted array ``a``, by binary search.

    Args:
        a: 1-D array in ascending order.
        v: values to insert.
        side: "left" to insert before equal elements, "right" after them.
        sorter: indices that sort ``a``, where it is not sorted.
        method: ignored; for compatibility with JAX.

    Returns:
        Integer array of the shape of ``v``.

    Raises:
        BadArgument: ``side`` is neither "left" nor "right".
        IllTyped: ``a`` is not 1-D.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3]))
    Array([0, 1], dtype=int32)
    """
    if side not in ("left", "right"):
        raise BadArgument("unknown side of searchsorted", "'left' or 'right'", repr(side))
    x, queries = (
        as_value(a, "the vector of searchsorted"),
        as_value(v, "the queries of searchsorted"),
    )
    if x.ndim != 1:
        raise IllTyped("searchsorted takes a vector", "1 axis", str(x.type))
    if sorter is not None:
        x = take(x, sorter)
    dtype, weak = pr.common_dtype((x, queries), "searchsorted")
    x, queries = (pr.converted(o, dtype, weak) for o in (x, queries))
    return _bisect(x, queries, side == "right")


def _bisect(x: Array, v: Array, after_equal: bool) -> Array:
    """Return insertion points in [low, high], by bisection."""
    index = allowed(int)
    start = broadcast_to(as_value(np.zeros((), index)), v.shape)
    end = broadcast_to(as_value(np.full((), x.size, index)), v.shape)

    def step(_: object, state: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = state
        middle = uf.right_shift(uf.add(low, high), 1)
        here = take(x, middle, mode="clip")
        beyond = uf.invert(_before(v, here)) if after_equal else _before(here, v)
        open_ = uf.less(low, high)
        right = uf.bitwise_and(open_, beyond)
        left = uf.bitwise_and(open_, uf.invert(beyond))
        return uf.where(right, uf.add(middle, 1), low), uf.where(left, middle, high)

    if x.size == 0:
        return start
    low, _ = fori_loop(0, x.size.bit_length(), step, (start, end))
    return low


def _before(x: Array, y: Array) -> Array:
    """Return whether x sorts before y; nan sorts last."""
    less = uf.less(x, y)
    if not is_inexact_dtype(x.dtype):
        return less
    return uf.bitwise_or(less, uf.bitwise_and(isnan(y), uf.invert(isnan(x))))


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Return the index of the bin of each element of ``x``.

    Args:
        x: array or scalar.
        bins: 1-D array of bin bounds in ascending or descending order.
        right: whether bins include their right bound instead of their left one.
        method: ignored; for compatibility with JAX.

    Returns:
        Integer array of the shape of ``x``.

    >>> jnp.digitize(jnp.array([0.5, 1.5]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2], dtype=int32)
    """
    bounds = as_value(bins, "the bins of digitize")
    side = "left" if right else "right"
    if bounds.ndim != 1 or bounds.size < 2:
        return searchsorted(bounds, x, side=side)
    ascending = uf.less_equal(take(bounds, 0), take(bounds, -1))
    found = searchsorted(uf.where(ascending, bounds, flip(bounds, 0)), x, side=side)
    return uf.where(ascending, found, uf.subtract(bounds.size, found))


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """Return the distinct elements of ``ar`` in ascending order.

    Args:
        ar: array; of known value where ``size`` is None.
        return_index: whether to return the indices of first occurrences.
        return_inverse: whether to return the indices that restore ``ar``.
        return_counts: whether to return the counts of the elements.
        axis: axis of the slices to compare; None flattens.
        equal_nan: whether all nans are equal.
        size: number of elements to return, truncated or filled up.
        fill_value: padding up to ``size``; the first element by default.
        sorted: no effect: the elements are sorted.

    Returns:
        Array of distinct elements, or a tuple of it and the requested integer arrays.

    Raises:
        ConcretizationError: ``ar`` is traced and there is no ``size``.
        BadArgument: there is no element to fill up with, or ``size`` is negative.

    >>> jnp.unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    x = as_value(ar, "the argument of unique")
    if size is None:
        x.numpy()  # raises for a traced array, whose number of distinct elements is unknown
    place = None if axis is None else plain_axis(axis, x.ndim, "unique")
    parts = ranked(ravel(x) if place is None else moveaxis(x, place, 0), equal_nan)
    count = int(sum(parts.starts)) if size is None else nonnegative(size, "the size of unique")
    at, beyond = first_true(parts.starts, count)
    found = _distinct(parts.rows, at, beyond, fill_value)
    inverse = zeros(parts.order.size, allowed(int)).at[parts.order].set(parts.ranks)
    extra: list[Array] = []
    if return_index:
        extra.append(take(parts.order, at) if parts.order.size else at)
    if return_inverse:
        extra.append(reshape(inverse, x.shape) if place is None else inverse)
    if return_counts:
        extra.append(zeros(count, allowed(int)).at[parts.ranks].add(1))
    first = found if place is None else moveaxis(found, 0, place)
    return (first, *extra) if extra else first


class Ranked(NamedTuple):
    """Slices along the first axis in ascending order.

    Attributes:
        rows: the slices.
        order: their positions before.
        starts: whether each differs from the previous one.
        ranks: the number of distinct ones before each.
    """

    rows: Array
    order: Array
    starts: Array
    ranks: Array


def ranked(x: Array, equal_nan: bool) -> Ranked:
    n, *rest = x.shape
    columns = reshape(x, (n, math.prod(rest)))
    keys = [columns[:, i] for i in range(columns.shape[1])]
    order = lexsort(keys[::-1]) if keys else _positions(columns[:, :0].sum(1), 0)
    rows = take(x, order, 0)
    earlier, later = slice_along(rows, 0, 0, max(n - 1, 0)), slice_along(rows, 0, min(n, 1), n)
    same = uf.equal(earlier, later)
    if equal_nan and is_inexact_dtype(x.dtype):
        same = uf.bitwise_or(same, uf.bitwise_and(isnan(earlier), isnan(later)))
    differs = any_(uf.invert(same), tuple(range(1, x.ndim)))
    starts = concatenate([full(min(n, 1), True), differs])
    return Ranked(rows, order, starts, uf.subtract(cumsum(starts), 1))


def _keys(x: Array) -> list[Array]:
    """Return the real keys to sort by, the first one first; complex ones with a nan come last."""
    if not is_complex(x.dtype):
        return [x]
    re, im = x.real, x.imag
    return [uf.add(uf.multiply(2, uf.astype(isnan(re), int)), uf.astype(isnan(im), int)), re, im]


def _distinct(rows: Array, at: Array, beyond: Array, fill_value: ArrayLike | None) -> Array:
    """Return the rows at these positions; beyond the last the fill value, or the first row."""
    n, *rest = rows.shape
    if not n and fill_value is None and at.size:
        raise BadArgument("expected a fill value for an empty result", "`fill_value`", "None")
    found = take(rows, at, 0) if n else zeros((at.size, *rest), rows.dtype)
    if fill_value is None:
        return found
    fill = fill_of(fill_value, rows.dtype, "the result of unique")
    return uf.where(reshape(beyond, (at.size, *(1,) * len(rest))), fill, found)


def first_true(mask: Array, count: int) -> tuple[Array, Array]:
    """Return the positions of the first true elements of a vector, and which are past the last.

    Args:
        mask: boolean vector.
        count: number of positions; those past the last are 0.
    """
    # The positions of true elements come first, in order, since sorting is stable.
    order = argsort(uf.invert(mask))
    missing = max(0, count - mask.size)
    order = concatenate([order, zeros(missing, order.dtype)]) if missing else order[:count]
    beyond = uf.greater_equal(_positions(order, 0), sum(mask))
    return uf.where(beyond, 0, order), beyond


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Return the ``n``-th differences of adjacent elements along ``axis``.

    Args:
        a: array or scalar.
        n: order of the difference.
        axis: axis to take differences along.
        prepend: values joined before ``a`` first.
        append: values joined after ``a`` first.

    Returns:
        Array of the dtype of ``a``, each order one element shorter along ``axis``; ``a`` itself,
        without the joined values, where ``n`` is 0.

    Raises:
        BadArgument: ``n`` is negative.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = as_value(a, "the argument of diff")
    place = plain_axis(axis, x.ndim, "diff")
    if n < 0:
        raise BadArgument("`n` of diff is negative", "n >= 0", str(n))
    if n == 0:
        return x
    ends = [as_value(e) if e is not None else None for e in (prepend, append)]
    lone = [1 if i == place else m for i, m in enumerate(x.shape)]
    front, back = (None if e is None else e if e.ndim else broadcast_to(e, lone) for e in ends)
    parts = [p for p in (front, x, back) if p is not None]
    x = concatenate(parts, place) if len(parts) > 1 else x
    compare = uf.not_equal if family(x.dtype) == "bool" else uf.subtract
    for _ in range(n):
        size = x.shape[place]
        later = slice_along(x, place, min(1, size), size)
        x = compare(later, slice_along(x, place, 0, max(0, size - 1)))
    return x


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return whether each element of ``element`` is in ``test_elements``.

    Args:
        element: array or scalar.
        test_elements: values to test against.
        assume_unique: unused promise.
        invert: whether to negate the result.
        method: "auto", "compare_all", "binary_search" or "sort"; all compare each pair.

    Returns:
        Boolean array of the shape of ``element``.

    Raises:
        BadArgument: an unknown method.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 4]))
    Array([False,  True, False], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise BadArgument(
            "unknown method of isin", "auto, compare_all, binary_search, sort", repr(method)
        )
    tests = ravel(test_elements)
    found = any_(uf.equal(expand_dims(as_value(element), -1), tests), -1)
    return uf.invert(found) if invert else found
