"""Quantiles, percentiles and medians."""

from __future__ import annotations

import math
from typing import Final

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis
from effax.arrays.axes import no_out, plain_axes
from effax.arrays.conversion import as_value
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import (
    broadcast_to,
    moveaxis,
    reshape,
)
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isnan
from effax.numpy.reduce import any as any_
from effax.numpy.reduce import sum
from effax.numpy.sorting import sort

__all__ = [
    "median", "nanmedian", "nanquantile", "percentile", "quantile",
]  # fmt: skip


_QUANTILE: Final = {
    "a": "array or scalar.",
    "q": "quantiles in [0, 1].",
    "axis": "axis or axes to reduce; None reduces all.",
    "out": "unsupported.",
    "overwrite_input": "unsupported.",
    "method": "interpolation, see :func:`quantile`.",
    "keepdims": "whether reduced axes remain with size 1.",
}
"""Descriptions of the parameters that functions share."""


@shared_docs(
    _QUANTILE,
    "Inexact array: axes of ``q``, then the remaining axes of ``a``.",
    method='interpolation: "linear", "lower", "higher", "midpoint" or "nearest".',
)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return the ``q``-quantiles of the elements along ``axis``.

    Raises:
        BadArgument: an unknown method, an empty reduction, or an unsupported argument.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, False)


@shared_docs(_QUANTILE, "Inexact array: axes of ``q``, then the remaining axes of ``a``.")
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return the ``q``-quantiles of the elements along ``axis`` that are not nan.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 4.0]), 0.5)
    Array(2.5, dtype=float32)
    """
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, True)


@shared_docs(
    _QUANTILE,
    "Inexact array: axes of ``q``, then the remaining axes of ``a``.",
    q="percentiles in [0, 100].",
)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return the ``q``-th percentiles of the elements along ``axis``.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75)
    Array(3., dtype=float32)
    """
    return quantile(a, uf.true_divide(q, 100), axis, out, overwrite_input, method, keepdims)


@shared_docs(_QUANTILE, "Inexact array without the reduced axes.")
def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the median of the elements along ``axis``.

    >>> jnp.median(jnp.array([1.0, 2.0, 4.0, 8.0]))
    Array(3., dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@shared_docs(_QUANTILE, "Inexact array without the reduced axes.")
def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the median of the elements along ``axis`` that are not nan.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.5, dtype=float32)
    """
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
        raise BadArgument(
            "quantile does not support `overwrite_input`", "overwrite_input=False", "True"
        )
    x = as_value(a, "the argument of quantile")
    dtype = pr.inexact(*pr.common_dtype((x, q), "quantile"))[0]
    x, part = pr.converted(x, dtype, False), pr.converted(as_value(q), dtype, False)
    axes = plain_axes(axis, x.ndim, "quantile")
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    if count == 0:
        raise BadArgument("quantile of an empty array", "at least one element", str(x.type))
    lines = reshape(moveaxis(x, axes, range(len(axes))), (count, *kept))
    ordered = sort(lines, 0)
    found = _between(ordered, part, count, method, skip_nan)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        found = reshape(found, (*part.shape, *shape))
    return found


def _between(ordered: Array, part: Array, count: int, method: str, skip_nan: bool) -> Array:
    """Return the elements at fractions ``part`` of the sorted axis 0, axes of ``part`` first."""
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
                "unknown method of quantile",
                "linear, lower, higher, midpoint, nearest",
                repr(method),
            )
    if skip_nan:
        return found
    return uf.where(any_(missing, 0), float("nan"), found)


def _elements(ordered: Array, place: Array) -> Array:
    """Return ``ordered[place[i, j], j]``, for positions along the first axis."""
    from effax.numpy.index import take_along_axis

    extra = place.ndim - (ordered.ndim - 1)
    line = ordered.shape[1:]
    lead = place.shape[:extra]
    full = broadcast_to(place, (*lead, *line))
    flat = reshape(full, (math.prod(lead), *line))
    at = uf.astype(flat, default_dtype(None, int))
    return reshape(take_along_axis(ordered, at, 0, mode="clip"), (*lead, *line))
