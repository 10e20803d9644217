"""Reductions that ignore nan."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.axes import no_out
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.prims.reduce import greatest as greatest_value
from effax.ir.prims.reduce import lowest as least_value
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isnan, logical_and
from effax.numpy.reduce import (
    CUMULATIVE,
    POSITION,
    REDUCTION,
    argmax,
    argmin,
    boolean_mask,
    cumprod,
    cumsum,
    max,
    min,
    prod,
    sum,
)
from effax.numpy.reduce import all as all_
from effax.numpy.statistics import mean, var

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _without_nan(
    a: ArrayLike, where: ArrayLike | None, what: str
) -> tuple[Array, ArrayLike | None]:
    """Return the array and the mask of elements that count: those in ``where`` that are not nan."""
    x = as_value(a, f"the argument of {what}")
    where = boolean_mask(where, what)
    if not is_inexact_dtype(x.dtype):
        return x, where
    kept = uf.invert(isnan(x))
    return x, kept if where is None else logical_and(kept, where)


@shared_docs(REDUCTION, "Array without the reduced axes.")
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the sum of the elements along ``axis`` that are not nan.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    x, kept = _without_nan(a, where, "nansum")
    return sum(x, axis, dtype, out, keepdims, initial, kept)


@shared_docs(REDUCTION, "Array without the reduced axes.")
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the product of the elements along ``axis`` that are not nan.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)
    """
    x, kept = _without_nan(a, where, "nanprod")
    return prod(x, axis, dtype, out, keepdims, initial, kept)


@shared_docs(REDUCTION, "Array of the dtype of ``a``, without the reduced axes.")
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the largest element along ``axis`` that is not nan; nan if all are.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    return _extreme(a, axis, out, keepdims, initial, where, True)


@shared_docs(REDUCTION, "Array of the dtype of ``a``, without the reduced axes.")
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the smallest element along ``axis`` that is not nan; nan if all are.

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    return _extreme(a, axis, out, keepdims, initial, where, False)


def _extreme(
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    greatest: bool,
) -> Array:
    reduce = max if greatest else min
    x = as_value(a, "the argument of nanmax" if greatest else "the argument of nanmin")
    if not is_inexact_dtype(x.dtype):
        return reduce(x, axis, out, keepdims, initial, where)
    missing = isnan(x)
    neutral = least_value(x.dtype) if greatest else greatest_value(x.dtype)
    found = reduce(uf.masked(uf.invert(missing), x, neutral), axis, out, keepdims, initial, where)
    if initial is not None:
        return found
    return uf.where(all_(missing, axis, keepdims=keepdims), float("nan"), found)


@shared_docs(REDUCTION, "Inexact array without the reduced axes.")
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Return the mean of the elements along ``axis`` that are not nan.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    x, kept = _without_nan(a, where, "nanmean")
    return mean(x, axis, dtype, out, keepdims, where=kept)


@shared_docs(
    REDUCTION,
    "Floating array without the reduced axes; nan where at most ``ddof`` elements remain.",
)
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Return the variance of the elements along ``axis`` that are not nan.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    x, kept = _without_nan(a, where, "nanvar")
    if kept is None:
        return var(x, axis, dtype, out, ddof, keepdims, mean=mean)
    # A nan that does not count must not reach the derivative either.
    return var(_filled(x, 0), axis, dtype, out, ddof, keepdims, where=kept, mean=mean)


@shared_docs(
    REDUCTION,
    "Floating array without the reduced axes; nan where at most ``ddof`` elements remain.",
)
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Return the standard deviation of the elements along ``axis`` that are not nan.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    return uf.magnitude(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


@shared_docs(POSITION, "Integer array without the reduced axis.")
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first largest element that is not nan; -1 if all are.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    return _position(a, axis, out, bool(keepdims), True)


@shared_docs(POSITION, "Integer array without the reduced axis.")
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first smallest element that is not nan; -1 if all are.

    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(0, dtype=int32)
    """
    return _position(a, axis, out, bool(keepdims), False)


def _position(a: ArrayLike, axis: int | None, out: None, keepdims: bool, greatest: bool) -> Array:
    find = argmax if greatest else argmin
    no_out(out, "nanargmax" if greatest else "nanargmin")
    x = as_value(a, "the argument of a reduction")
    if not is_inexact_dtype(x.dtype):
        return find(x, axis, None, keepdims)
    missing = isnan(x)
    neutral = least_value(x.dtype) if greatest else greatest_value(x.dtype)
    found = find(uf.masked(uf.invert(missing), x, neutral), axis, None, keepdims)
    return uf.where(all_(missing, axis, keepdims=keepdims), -1, found)


@shared_docs(CUMULATIVE, "Array of the shape of ``a``, or 1-D where ``axis`` is None.")
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return the cumulative sum of the elements along ``axis``, nan counted as 0.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    return cumsum(_filled(a, 0), axis, dtype, out)


@shared_docs(CUMULATIVE, "Array of the shape of ``a``, or 1-D where ``axis`` is None.")
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return the cumulative product of the elements along ``axis``, nan counted as 1.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return cumprod(_filled(a, 1), axis, dtype, out)


def _filled(a: ArrayLike, fill: int) -> Array:
    x = as_value(a, "the argument of a running combination")
    return uf.masked(uf.invert(isnan(x)), x, fill) if is_inexact_dtype(x.dtype) else x
