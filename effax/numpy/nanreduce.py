"""Reductions that leave nan out."""

from __future__ import annotations

from effax.arrays.device_array import Array, ArrayLike, Axis, DTypeLike, as_value
from effax.ir.dtypes import is_inexact_dtype
from effax.numpy import ufuncs as uf
from effax.numpy.axes import no_out
from effax.numpy.predicates import isnan, logical_and
from effax.numpy.reduce import all as all_
from effax.numpy.reduce import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,
    mean,
    min,
    prod,
    sum,
    var,
)

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _there(a: ArrayLike, where: ArrayLike | None, what: str) -> tuple[Array, ArrayLike | None]:
    """The array, and which elements count: those that are not nan, of those in the mask."""
    x = as_value(a, f"the argument of {what}")
    if not is_inexact_dtype(x.dtype):
        return x, where
    there = uf.invert(isnan(x))
    return x, there if where is None else logical_and(there, where)


def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of elements that are not nan."""
    x, there = _there(a, where, "nansum")
    return sum(x, axis, dtype, out, keepdims, initial, there)


def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of elements that are not nan."""
    x, there = _there(a, where, "nanprod")
    return prod(x, axis, dtype, out, keepdims, initial, there)


def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element that is not nan; nan where there is none."""
    return _extreme(a, axis, out, keepdims, initial, where, True)


def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least element that is not nan; nan where there is none."""
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
    neutral = float("-inf") if greatest else float("inf")
    found = reduce(uf.masked(uf.invert(missing), x, neutral), axis, out, keepdims, initial, where)
    if initial is not None:
        return found
    return uf.where(all_(missing, axis, keepdims=keepdims), float("nan"), found)


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements that are not nan."""
    x, there = _there(a, where, "nanmean")
    return mean(x, axis, dtype, out, keepdims, where=there)


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The variance of elements that are not nan; nan where there are too few."""
    x, there = _there(a, where, "nanvar")
    if there is None:
        return var(x, axis, dtype, out, ddof, keepdims)
    # A nan that does not count must not reach the derivative either.
    spread = var(_filled(x, 0), axis, dtype, out, ddof, keepdims, where=there)
    enough = uf.greater(sum(there, axis, keepdims=keepdims), ddof)
    return uf.where(enough, spread, float("nan"))


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The square root of :func:`nanvar`, whose derivative at 0 is taken for 0."""
    return uf.flat_root(nanvar(a, axis, dtype, out, ddof, keepdims, where))


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first greatest element that is not nan; -1 where all are."""
    return _position(a, axis, out, bool(keepdims), True)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first least element that is not nan; -1 where all are."""
    return _position(a, axis, out, bool(keepdims), False)


def _position(a: ArrayLike, axis: int | None, out: None, keepdims: bool, greatest: bool) -> Array:
    find = argmax if greatest else argmin
    no_out(out, "nanargmax" if greatest else "nanargmin")
    x = as_value(a, "the argument of a reduction")
    if not is_inexact_dtype(x.dtype):
        return find(x, axis, None, keepdims)
    missing = isnan(x)
    neutral = float("-inf") if greatest else float("inf")
    found = find(uf.masked(uf.invert(missing), x, neutral), axis, None, keepdims)
    return uf.where(all_(missing, axis, keepdims=keepdims), -1, found)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running sums of elements, nan taken as 0."""
    return cumsum(_filled(a, 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running products of elements, nan taken as 1."""
    return cumprod(_filled(a, 1), axis, dtype, out)


def _filled(a: ArrayLike, fill: int) -> Array:
    x = as_value(a, "the argument of a running combination")
    return uf.masked(uf.invert(isnan(x)), x, fill) if is_inexact_dtype(x.dtype) else x
