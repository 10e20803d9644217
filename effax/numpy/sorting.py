"""Sorting, order statistics, searching in what is sorted, and sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from effax.arrays.binding import bind
from effax.arrays.device_array import Array, ArrayLike, Axis, as_value, from_numpy
from effax.config import allowed
from effax.ir.dtypes import family, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota, Sort
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import isnan
from effax.numpy.axes import no_out, plain_axes, plain_axis
from effax.numpy.index import take
from effax.numpy.reduce import any as any_
from effax.numpy.reduce import sum
from effax.numpy.shapes import (
    broadcast_to,
    expand_dims,
    flip,
    moveaxis,
    ravel,
    reshape,
    slice_along,
)

__all__ = [
    "argsort", "diff", "digitize", "isin", "lexsort", "median", "nanmedian", "nanquantile",
    "percentile", "quantile", "searchsorted", "sort", "unique",
]  # fmt: skip


def _sorted(axis: int, keys: Sequence[Array], *others: Array) -> list[Array]:
    return cast("list[Array]", bind(Sort(axis, len(keys)), *keys, *others))


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
    """The elements in ascending order along an axis, nan last; None flattens."""
    _plain_sort(kind, order, "sort")
    x, place = _along(a, axis, "sort")
    (made,) = _sorted(place, [x])
    return flip(made, place) if descending else made


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The positions that put the elements in order along an axis; equal ones keep their order."""
    _plain_sort(kind, order, "argsort")
    x, place = _along(a, axis, "argsort")
    at = _positions(x, place)
    if not descending:
        return _sorted(place, [x], at)[1]
    # Reversed before and after, so that equal elements keep their order.
    return flip(_sorted(place, [flip(x, place)], flip(at, place))[1], place)


def _plain_sort(kind: object, order: object, what: str) -> None:
    if kind is not None or order is not None:
        raise BadArgument(
            f"{what} has one kind, a stable one", "kind=None, order=None", f"{kind!r}, {order!r}"
        )


def lexsort(keys: Sequence[ArrayLike] | Array, axis: int = -1) -> Array:
    """The positions that put in order by the last key, then the last but one, ..."""
    values = [as_value(k, f"key {i} of lexsort") for i, k in enumerate(keys)]
    if not values:
        raise BadArgument("lexsort needs keys", "at least one", "none")
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
    """Where elements of ``v`` go into the sorted vector ``a``.

    Args:
        a: a vector in ascending order.
        v: what is looked for.
        side: "left" for before equal elements, "right" for after them.
        sorter: positions that sort ``a``, where it is not sorted.
        method: kept for likeness with JAX; the search halves the vector.
    """
    if side not in ("left", "right"):
        raise BadArgument("searchsorted knows two sides", "'left' or 'right'", repr(side))
    x, looked_for = as_value(a, "the vector of searchsorted"), as_value(v, "what is looked for")
    if x.ndim != 1:
        raise IllTyped("searchsorted looks into a vector", "1 axis", str(x.type))
    if sorter is not None:
        x = take(x, sorter)
    dtype, weak = pr.common_dtype((x, looked_for), "searchsorted")
    x, looked_for = (pr.converted(o, dtype, weak) for o in (x, looked_for))
    return _halving(x, looked_for, side == "right")


def _halving(x: Array, v: Array, after_equal: bool) -> Array:
    """Binary search: the place is in [low, high], and each step halves the interval."""
    from effax.lax.whiles import fori_loop

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
    """Whether x comes before y in order: nan comes last."""
    less = uf.less(x, y)
    if not is_inexact_dtype(x.dtype):
        return less
    return uf.bitwise_or(less, uf.bitwise_and(isnan(y), uf.invert(isnan(x))))


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    """The number of the bin that each element is in; bins are bounds in ascending order."""
    return searchsorted(bins, x, side="left" if right else "right")


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """The element at a part ``q`` (0 to 1) of the way through the sorted elements along axes.

    Args:
        a: the array.
        q: a number or an array of numbers, whose axes come first in the result.
        axis: along which axes; None for all.
        out: not supported.
        overwrite_input: not supported.
        method: between two elements, "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether the axes stay, with size 1.
    """
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, False)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """As :func:`quantile`, of the elements that are not nan."""
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, True)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """As :func:`quantile`, with ``q`` from 0 to 100."""
    return quantile(a, uf.true_divide(q, 100), axis, out, overwrite_input, method, keepdims)


def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element along axes, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """As :func:`median`, of the elements that are not nan."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    out: None,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    skip_nan: bool,
) -> Array:
    no_out(out, "quantile")
    if overwrite_input:
        raise BadArgument("quantile overwrites nothing", "overwrite_input=False", "True")
    x = as_value(a, "the argument of quantile")
    dtype = pr.inexact(*pr.common_dtype((x, q), "quantile"))[0]
    x, part = pr.converted(x, dtype, False), pr.converted(as_value(q), dtype, False)
    axes = plain_axes(axis, x.ndim, "quantile")
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    if count == 0:
        raise BadArgument("quantile of no elements", "at least one element", str(x.type))
    lines = reshape(moveaxis(x, axes, range(len(axes))), (count, *kept))
    (ordered,) = _sorted(0, [lines])
    found = _between(ordered, part, count, method, skip_nan)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        found = reshape(found, (*part.shape, *shape))
    return found


def _between(ordered: Array, part: Array, count: int, method: str, skip_nan: bool) -> Array:
    """The elements at these parts of the way; axes of ``part`` first, then those of a line."""
    missing = isnan(ordered)
    part = reshape(part, (*part.shape, *(1,) * (ordered.ndim - 1)))
    if skip_nan:
        there = uf.astype(sum(uf.invert(missing), 0), ordered.dtype)
        place = uf.multiply(part, uf.maximum(uf.subtract(there, 1), 0))
    else:
        place = uf.multiply(part, count - 1)
    low, high = uf.floor(place), uf.ceil(place)
    below, above = _elements(ordered, low), _elements(ordered, high)
    weight = uf.subtract(place, low)
    match method:
        case "linear":
            found = uf.add(uf.multiply(below, uf.subtract(1, weight)), uf.multiply(above, weight))
        case "lower":
            found = below
        case "higher":
            found = above
        case "midpoint":
            found = uf.multiply(uf.add(below, above), 0.5)
        case "nearest":
            found = uf.where(uf.less_equal(weight, 0.5), below, above)
        case _:
            raise BadArgument(
                "quantile knows no such method",
                "linear, lower, higher, midpoint, nearest",
                repr(method),
            )
    if skip_nan:
        return found
    return uf.where(any_(missing, 0), float("nan"), found)


def _elements(ordered: Array, place: Array) -> Array:
    """``ordered[place[i, j], j]``, for places along the first axis."""
    from effax.numpy.index import take_along_axis

    extra = place.ndim - (ordered.ndim - 1)
    line = ordered.shape[1:]
    lead = place.shape[:extra]
    full = broadcast_to(place, (*lead, *line))
    flat = reshape(full, (math.prod(lead), *line))
    at = uf.astype(flat, allowed(int))
    return reshape(take_along_axis(ordered, at, 0, mode="clip"), (*lead, *line))


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
) -> Array | tuple[Array, ...]:
    """The different elements in ascending order. The value of the array must be known.

    Args:
        ar: the array.
        return_index: whether the position of each first occurrence is a result too.
        return_inverse: whether the positions that restore the array are.
        return_counts: whether the numbers of occurrences are.
        axis: along which axis parts are compared; None flattens.
        equal_nan: whether all nans are one element.
        size: how many; what is too many is left out, what is missing is filled.
        fill_value: what fills up, by default the first element.
    """
    value = as_value(ar, "the argument of unique").numpy()
    found, index, inverse, counts = np.unique(
        value,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        equal_nan=equal_nan,
    )
    if size is not None:
        along = 0 if axis is None else axis
        fill = None if fill_value is None else as_value(fill_value).numpy()
        found = _sized(found, size, along, fill)
        index = _sized(index, size, 0, None)
        counts = _sized(counts, size, 0, np.zeros((), counts.dtype))
    kind = allowed(int)
    more = [(return_index, index), (return_inverse, inverse), (return_counts, counts)]
    extra = [from_numpy(x.astype(kind)) for wanted, x in more if wanted]
    first = from_numpy(found.astype(value.dtype))
    return (first, *extra) if extra else first


def _sized(x: np.ndarray, size: int, axis: int, fill: np.ndarray | None) -> np.ndarray:
    have = x.shape[axis]
    if have >= size:
        return np.take(x, range(size), axis)
    if fill is None and not have:
        raise BadArgument("nothing fills up an empty result", "`fill_value`", "None")
    shape = [size - have if i == axis else n for i, n in enumerate(x.shape)]
    one = np.take(x, [0], axis) if fill is None else np.asarray(fill, x.dtype)
    return np.concatenate([x, np.broadcast_to(one, shape)], axis)


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours along an axis, ``n`` times."""
    from effax.numpy.join import concatenate

    x = as_value(a, "the argument of diff")
    place = plain_axis(axis, x.ndim, "diff")
    if n < 0:
        raise BadArgument("diff is taken a number of times", "n >= 0", str(n))
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


def isin(element: ArrayLike, test_elements: ArrayLike, invert: bool = False) -> Array:
    """Whether elements are among the test elements."""
    tests = ravel(test_elements)
    found = any_(uf.equal(expand_dims(as_value(element), -1), tests), -1)
    return uf.invert(found) if invert else found
