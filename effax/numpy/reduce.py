"""Reductions: sums, extremes, means, logic, indices of extremes, cumulative sums and products."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.axes import no_out, plain_axes, plain_axis
from effax.arrays.binding import bind1
from effax.arrays.complex_order import extreme, position
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import broadcast_to, expand_dims, ravel
from effax.arrays.shared_docs import shared_docs
from effax.ir import prims
from effax.ir.dtypes import DType, family, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.prims import reduce as r
from effax.numpy import ufuncs as uf

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum",
    "max", "min", "minmax", "prod", "ptp", "sum",
]  # fmt: skip


A = TypeVar("A")

REDUCTION: Final = {
    "a": "array or scalar.",
    "axis": "axis or axes to reduce; None reduces all.",
    "dtype": "dtype of the result.",
    "out": "unsupported.",
    "keepdims": "whether reduced axes remain with size 1.",
    "initial": "start value of the reduction.",
    "where": "boolean mask of the elements to include; broadcasts with ``a``.",
    "promote_integers": "whether narrow integers widen.",
    "ddof": "number subtracted from the element count in the divisor.",
    "mean": "precomputed mean, with the reduced axes kept.",
    "correction": "alternative name of ``ddof``.",
}
POSITION: Final = REDUCTION | {"axis": "axis to reduce; None flattens."}
CUMULATIVE: Final = REDUCTION | {
    "axis": "axis to accumulate along; None flattens.",
    "dtype": "dtype to accumulate in; integers narrower than the default widen to it.",
}


def _accumulator(dtype: DType) -> DType:
    """Return the dtype of sums and products of ``dtype``: integers widen to the default width."""
    match family(dtype):
        case "bool":
            return default_dtype(None, int)
        case "int":
            return builtins.max(dtype, default_dtype(None, int), key=lambda d: d.itemsize)
        case "uint":
            return builtins.max(dtype, allowed(np.uint64), key=lambda d: d.itemsize)
        case _:
            return dtype


def _kept_dims(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return expand_dims(x, axes) if keepdims and axes else x


def _strong(x: Array) -> Array:
    return pr.converted(x, x.dtype, False)


def boolean_mask(where: ArrayLike | None, what: str) -> Array | None:
    """Return the mask of a reduction, or None for all elements. Raises IllTyped for numbers."""
    if where is None:
        return None
    mask = as_value(where, f"the mask of {what}")
    if family(mask.dtype) != "bool":
        raise IllTyped(f"the mask of {what} is not boolean", "a boolean array", str(mask.type))
    return mask


def _where_else(x: Array, where: ArrayLike | None, neutral: float, what: str) -> Array:
    """Return ``x`` with the neutral element where the mask is false."""
    mask = boolean_mask(where, what)
    if mask is None:
        return x
    shape = pr.broadcast_shapes([x.shape, mask.shape], what)
    return uf.masked(broadcast_to(mask, shape), broadcast_to(x, shape), neutral)


@shared_docs(
    REDUCTION,
    "Array without the reduced axes.",
    dtype="dtype to accumulate in; integers narrower than the default widen to it.",
)
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Return the sum of the elements along ``axis``.

    Raises:
        IllTyped: ``where`` is not boolean.

    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    no_out(out, "sum")
    x = _to_accumulate(a, dtype, promote_integers, "sum")
    x = _where_else(x, where, 0, "sum")
    axes = plain_axes(axis, x.ndim, "sum")
    total = _kept_dims(_combined(prims.ReduceSum, prims.ReduceOr, x, axes), axes, keepdims)
    return total if initial is None else uf.add(total, _initial(initial, total, "sum"))


@shared_docs(
    REDUCTION,
    "Array without the reduced axes.",
    dtype="dtype to accumulate in; integers narrower than the default widen to it.",
)
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Return the product of the elements along ``axis``.

    Raises:
        IllTyped: ``where`` is not boolean.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([3, 8], dtype=int32)
    """
    no_out(out, "prod")
    x = _to_accumulate(a, dtype, promote_integers, "prod")
    x = _where_else(x, where, 1, "prod")
    axes = plain_axes(axis, x.ndim, "prod")
    total = _kept_dims(_combined(prims.ReduceProd, prims.ReduceAnd, x, axes), axes, keepdims)
    return total if initial is None else uf.multiply(total, _initial(initial, total, "prod"))


def _combined(
    prim: Callable[[A], Primitive], of_booleans: Callable[[A], Primitive], x: Array, axes: A
) -> Array:
    """Apply a primitive of numbers, or its counterpart of booleans where the dtype is bool."""
    return bind1((of_booleans if family(x.dtype) == "bool" else prim)(axes), x)


def _to_accumulate(a: ArrayLike, dtype: DTypeLike | None, promote: bool, what: str) -> Array:
    x = as_value(a, f"the argument of {what}")
    if dtype is not None:
        return uf.astype(x, dtype)
    if promote or family(x.dtype) == "bool":
        return pr.converted(x, _accumulator(x.dtype), False)
    return _strong(x)


@shared_docs(
    REDUCTION,
    "Array of the dtype of ``a``, without the reduced axes.",
    initial="lower bound of the result; required for empty reductions and with ``where``.",
)
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the largest element along ``axis``; nan if one is nan.

    Raises:
        BadArgument: ``initial`` is missing.

    >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    return _extreme(a, axis, out, keepdims, initial, where, True)


@shared_docs(
    REDUCTION,
    "Array of the dtype of ``a``, without the reduced axes.",
    initial="upper bound of the result; required for empty reductions and with ``where``.",
)
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the smallest element along ``axis``; nan if one is nan.

    Raises:
        BadArgument: ``initial`` is missing.

    >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=0)
    Array([1, 4], dtype=int32)
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
    what = "max" if greatest else "min"
    no_out(out, what)
    x = _strong(as_value(a, f"the argument of {what}"))
    axes = plain_axes(axis, x.ndim, what)
    if initial is None and (where is not None or math.prod(x.shape[i] for i in axes) == 0):
        raise BadArgument(
            f"{what} of possibly no elements is undefined",
            expected="at least one element" if where is None else "`initial`, beside `where`",
            found=str(x.type),
            remedy="pass `initial`",
        )
    neutral = r.lowest(x.dtype) if greatest else r.greatest(x.dtype)
    x = _where_else(x, where, neutral, what)
    found = _kept_dims(extreme(x, axes, greatest), axes, keepdims)
    if initial is None:
        return found
    return (uf.maximum if greatest else uf.minimum)(found, _initial(initial, found, what))


def _initial(initial: ArrayLike, result: Array, what: str) -> Array:
    """Return the initial value in the dtype of the result. Raises IllTyped unless a scalar."""
    value = asarray(initial, result.dtype)
    if value.shape:
        raise IllTyped(f"the initial value of {what} must be a scalar", "a scalar", str(value.type))
    return value


amax = max
amin = min


@shared_docs(REDUCTION, "Array of the dtype of ``a``, without the reduced axes.")
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the range of the elements along ``axis``: largest minus smallest.

    >>> jnp.ptp(jnp.array([1, 5, 3]))
    Array(4, dtype=int32)
    """
    return uf.subtract(max(a, axis, out, keepdims), min(a, axis, out, keepdims))


@shared_docs(REDUCTION, "Boolean array without the reduced axes.")
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Return whether any element along ``axis`` is nonzero.

    >>> jnp.any(jnp.array([0, 2]))
    Array(True, dtype=bool)
    """
    no_out(out, "any")
    x = _where_else(uf.truth(a), where, False, "any")
    axes = plain_axes(axis, x.ndim, "any")
    return _kept_dims(bind1(prims.ReduceOr(axes), x), axes, keepdims)


@shared_docs(REDUCTION, "Boolean array without the reduced axes.")
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Return whether all elements along ``axis`` are nonzero.

    >>> jnp.all(jnp.array([0, 2]))
    Array(False, dtype=bool)
    """
    no_out(out, "all")
    x = _where_else(uf.truth(a), where, True, "all")
    axes = plain_axes(axis, x.ndim, "all")
    return _kept_dims(bind1(prims.ReduceAnd(axes), x), axes, keepdims)


@shared_docs(REDUCTION, "Integer array without the reduced axes.")
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the number of nonzero elements along ``axis``.

    >>> jnp.count_nonzero(jnp.array([0, 2, 3]))
    Array(2, dtype=int32)
    """
    return sum(uf.truth(a), axis, keepdims=keepdims)


@shared_docs(POSITION, "Integer array without the reduced axis.")
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first largest element along ``axis``; nan counts as largest.

    Raises:
        BadArgument: the axis is empty.

    >>> jnp.argmax(jnp.array([1, 5, 3]))
    Array(1, dtype=int32)
    """
    return _position(a, axis, out, bool(keepdims), "argmax")


@shared_docs(POSITION, "Integer array without the reduced axis.")
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first smallest element along ``axis``; nan counts as smallest.

    Raises:
        BadArgument: the axis is empty.

    >>> jnp.argmin(jnp.array([4, 1, 3]))
    Array(1, dtype=int32)
    """
    return _position(a, axis, out, bool(keepdims), "argmin")


def _position(a: ArrayLike, axis: int | None, out: None, keepdims: bool, what: str) -> Array:
    no_out(out, what)
    x = as_value(a, f"the argument of {what}")
    ndim = x.ndim
    if axis is None:
        x = ravel(x)
    place = 0 if axis is None else plain_axis(axis, ndim, what)
    if x.shape[place] == 0:
        raise BadArgument(f"{what} of no elements", "at least one element", str(x.type))
    found = position(x, place, what == "argmax", allowed(int))
    if not keepdims:
        return found
    return expand_dims(found, tuple(range(ndim)) if axis is None else place)


@shared_docs(CUMULATIVE, "Array of the shape of ``a``, or 1-D where ``axis`` is None.")
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return the cumulative sum of the elements along ``axis``.

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    no_out(out, "cumsum")
    x, place = _running(a, axis, dtype, "cumsum")
    return _combined(prims.CumSum, prims.CumMax, x, place)


@shared_docs(CUMULATIVE, "Array of the shape of ``a``, or 1-D where ``axis`` is None.")
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return the cumulative product of the elements along ``axis``.

    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    no_out(out, "cumprod")
    x, place = _running(a, axis, dtype, "cumprod")
    return _combined(prims.CumProd, prims.CumMin, x, place)


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return the smallest and the largest elements along ``axis``.

    Args:
        a: array or scalar.
        axis: axis or axes to reduce; None reduces all.
        out: unsupported.
        keepdims: whether reduced axes remain with size 1.
        initial: bound of the results: an upper one of the first, a lower one of the second.
        where: mask of the elements to combine.

    Returns:
        Pair of arrays without the reduced axes.

    >>> jnp.minmax(jnp.array([3, 1, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    return (
        min(a, axis, out, keepdims, initial, where),
        max(a, axis, out, keepdims, initial, where),
    )


def _running(
    a: ArrayLike, axis: int | None, dtype: DTypeLike | None, what: str
) -> tuple[Array, int]:
    x = as_value(a, f"the argument of {what}")
    if dtype is not None:
        x = uf.astype(x, dtype)
    elif not is_inexact_dtype(x.dtype):
        x = pr.converted(x, _accumulator(x.dtype), x.weak_type)
    if axis is None:
        return ravel(x), 0
    return x, plain_axis(axis, x.ndim, what)
