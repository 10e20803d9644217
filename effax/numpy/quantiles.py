"""Quantiles, percentiles and medians."""

from __future__ import annotations

import math
from typing import Final

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis
from effax.arrays.axes import no_out, plain_axes
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import (
    broadcast_to,
    moveaxis,
    reshape,
)
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.index import take_along_axis
from effax.numpy.predicates import isnan, real_operand
from effax.numpy.reduce import any as any_
from effax.numpy.reduce import argmax, cumsum, sum
from effax.numpy.sorting import argsort, sort

__all__ = [
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip


_QUANTILE: Final = {
    "a": "array or scalar.",
    "q": "quantiles in [0, 1].",
    "axis": "axis or axes to reduce; None reduces all.",
    "out": "unsupported.",
    "overwrite_input": "unsupported.",
    "method": "interpolation, see :func:`quantile`.",
    "keepdims": "whether reduced axes remain with size 1.",
    "weights": 'weights of the elements, or of those along one axis; of method "inverted_cdf".',
    "out_sharding": "sharding of the result.",
}
"""Descriptions of the parameters that functions share."""


@shared_docs(
    _QUANTILE,
    "Inexact array: axes of ``q``, then the remaining axes of ``a``.",
    method='interpolation: "linear", "lower", "higher", "midpoint", "nearest" or "inverted_cdf".',
)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the ``q``-quantiles of the elements along ``axis``.

    Raises:
        BadArgument: an unknown method, an empty reduction, or an unsupported argument.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, False, weights)


@shared_docs(_QUANTILE, "Inexact array: axes of ``q``, then the remaining axes of ``a``.")
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the ``q``-quantiles of the elements along ``axis`` that are not nan.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 4.0]), 0.5)
    Array(2.5, dtype=float32)
    """
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims, True, weights)


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
    *,
    weights: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return the ``q``-th percentiles of the elements along ``axis``.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75)
    Array(3., dtype=float32)
    """
    part = uf.true_divide(q, 100)
    made = quantile(a, part, axis, out, overwrite_input, method, keepdims, weights=weights)
    return on_device(made, out_sharding, "percentile")


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


@shared_docs(
    _QUANTILE,
    "Inexact array: axes of ``q``, then the remaining axes of ``a``.",
    q="percentiles in [0, 100].",
)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the ``q``-th percentiles of the elements along ``axis`` that are not nan.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 4.0]), 50)
    Array(2.5, dtype=float32)
    """
    part = uf.true_divide(q, 100)
    return nanquantile(a, part, axis, out, overwrite_input, method, keepdims, weights=weights)


def _quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    out: None,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    skip_nan: bool,
    weights: ArrayLike | None = None,
) -> Array:
    no_out(out, "quantile")
    if overwrite_input:
        raise BadArgument(
            "quantile does not support `overwrite_input`", "overwrite_input=False", "True"
        )
    x = as_value(real_operand(a, "quantile"), "the argument of quantile")
    dtype = pr.inexact(*pr.common_dtype((x, q), "quantile"))[0]
    x, part = pr.converted(x, dtype, False), pr.converted(as_value(q), dtype, False)
    if part.ndim > 1:
        raise IllTyped("quantile takes a scalar or a vector of quantiles", "q[n]", str(part.type))
    axes = plain_axes(axis, x.ndim, "quantile")
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    if count == 0:
        raise BadArgument("quantile of an empty array", "at least one element", str(x.type))
    lines = reshape(moveaxis(x, axes, range(len(axes))), (count, *kept))
    if weights is not None or method == "inverted_cdf":
        w = _weight_lines(weights, x, axes, method)
        found = _by_weight(lines, reshape(w, lines.shape), part, skip_nan)
    else:
        found = _between(sort(lines, 0), part, count, method, skip_nan)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        found = reshape(found, (*part.shape, *shape))
    return found


def _weight_lines(weights: ArrayLike | None, x: Array, axes: tuple[int, ...], method: str) -> Array:
    """Return a weight for each element, the reduced axes first."""
    if method != "inverted_cdf":
        raise BadArgument("quantile with weights has one method", "inverted_cdf", repr(method))
    w = pr.converted(as_value(1 if weights is None else weights), x.dtype, False)
    if w.ndim == 1 and len(axes) == 1 and w.shape != x.shape:
        w = reshape(w, [w.shape[0] if i in axes else 1 for i in range(x.ndim)])
    if w.shape and any(m not in (1, n) for m, n in zip(w.shape, x.shape, strict=True)):
        raise IllTyped("the weights of quantile do not fit", str(x.shape), str(w.shape))
    return moveaxis(broadcast_to(w, x.shape), axes, range(len(axes)))


def _by_weight(lines: Array, weights: Array, part: Array, skip_nan: bool) -> Array:
    """Return the first elements whose cumulative weight is at least the part of the whole."""
    missing = isnan(lines)
    w = uf.where(missing, 0, weights)
    order = argsort(lines, 0)
    ordered, w = take_along_axis(lines, order, 0), take_along_axis(w, order, 0)
    upto = cumsum(w, 0)
    share = uf.multiply(reshape(part, (*part.shape, *(1,) * lines.ndim)), upto[-1])
    reached = uf.bitwise_and(uf.greater_equal(upto, share), uf.greater(w, 0))
    place = argmax(reached, part.ndim)
    found = _elements(ordered, uf.astype(place, ordered.dtype))
    return found if skip_nan else uf.where(any_(missing, 0), float("nan"), found)


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
    extra = place.ndim - (ordered.ndim - 1)
    line = ordered.shape[1:]
    lead = place.shape[:extra]
    full = broadcast_to(place, (*lead, *line))
    flat = reshape(full, (math.prod(lead), *line))
    at = uf.astype(flat, default_dtype(None, int))
    return reshape(take_along_axis(ordered, at, 0, mode="clip"), (*lead, *line))
