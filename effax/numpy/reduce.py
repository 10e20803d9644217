"""Reductions: sums, extremes, means, logic, positions of extremes, running combinations."""

from __future__ import annotations

import builtins
import math

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, Axis, DTypeLike, as_value
from effax.ir import prims
from effax.ir.dtypes import DType, as_dtype, family, is_complex, is_float, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import reduce as r
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import no_out, plain_axes, plain_axis
from effax.numpy.creation import asarray
from effax.numpy.dtypes import default_dtype
from effax.numpy.shapes import broadcast_to, expand_dims, ravel, reshape

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod",
    "cumsum", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def _accumulator(dtype: DType) -> DType:
    """The dtype that sums and products of ``dtype`` have: integers grow to the default width."""
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


def _where_else(x: Array, where: ArrayLike | None, neutral: float, what: str) -> Array:
    """``x`` with the neutral element where the mask does not hold."""
    if where is None:
        return x
    mask = as_value(where, f"the mask of {what}")
    if family(mask.dtype) != "bool":
        raise IllTyped(f"the mask of {what} is not boolean", "a boolean array", str(mask.type))
    shape = pr.broadcast_shapes([x.shape, mask.shape], what)
    return uf.masked(broadcast_to(mask, shape), broadcast_to(x, shape), neutral)


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
    """The sum of elements along axes.

    Args:
        a: the array.
        axis: along which axes; None for all.
        dtype: to sum in; by default, integers narrower than the default ones are summed in it.
        out: not supported.
        keepdims: whether the axes stay, with size 1.
        initial: what is added.
        where: which elements count.
        promote_integers: whether narrow integers are summed in the default dtype.
    """
    no_out(out, "sum")
    x = _to_accumulate(a, dtype, promote_integers, "sum")
    x = _where_else(x, where, 0, "sum")
    axes = plain_axes(axis, x.ndim, "sum")
    total = _kept_dims(bind1(prims.ReduceSum(axes), x), axes, keepdims)
    return total if initial is None else uf.add(total, asarray(initial, total.dtype))


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
    """The product of elements along axes; the arguments are those of :func:`sum`."""
    no_out(out, "prod")
    x = _to_accumulate(a, dtype, promote_integers, "prod")
    x = _where_else(x, where, 1, "prod")
    axes = plain_axes(axis, x.ndim, "prod")
    total = _kept_dims(bind1(prims.ReduceProd(axes), x), axes, keepdims)
    return total if initial is None else uf.multiply(total, asarray(initial, total.dtype))


def _to_accumulate(a: ArrayLike, dtype: DTypeLike | None, promote: bool, what: str) -> Array:
    x = as_value(a, f"the argument of {what}")
    if dtype is not None:
        return uf.astype(x, dtype)
    if promote or family(x.dtype) == "bool":
        return pr.converted(x, _accumulator(x.dtype), False)
    return _strong(x)


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element along axes, nan where there is one."""
    return _extreme(a, axis, out, keepdims, initial, where, True)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least element along axes, nan where there is one."""
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
            f"{what} of what may be no elements has no value",
            expected="at least one element" if where is None else "`initial`, beside `where`",
            found=str(x.type),
            remedy="give `initial`",
        )
    neutral = r.lowest(x.dtype) if greatest else r.greatest(x.dtype)
    x = _where_else(x, where, neutral, what)
    prim = prims.ReduceMax(axes) if greatest else prims.ReduceMin(axes)
    found = _kept_dims(bind1(prim, x), axes, keepdims)
    if initial is None:
        return found
    return (uf.maximum if greatest else uf.minimum)(found, asarray(initial, found.dtype))


amax = max
amin = min


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The greatest minus the least element along axes."""
    return uf.subtract(max(a, axis, out, keepdims), min(a, axis, out, keepdims))


def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element along axes is not zero."""
    no_out(out, "any")
    x = _where_else(uf.truth(a), where, False, "any")
    axes = plain_axes(axis, x.ndim, "any")
    return _kept_dims(bind1(prims.ReduceOr(axes), x), axes, keepdims)


def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether no element along axes is zero."""
    no_out(out, "all")
    x = _where_else(uf.truth(a), where, True, "all")
    axes = plain_axes(axis, x.ndim, "all")
    return _kept_dims(bind1(prims.ReduceAnd(axes), x), axes, keepdims)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along axes are not zero."""
    return sum(uf.truth(a), axis, keepdims=keepdims)


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements along axes, in a floating dtype; narrow floats are summed in float32."""
    no_out(out, "mean")
    x = as_value(a, "the argument of mean")
    target = pr.inexact(x.dtype, False)[0] if dtype is None else allowed(dtype)
    work = _wide(target) if is_inexact_dtype(target) else allowed(float)
    x = pr.converted(x, work, False)
    total = sum(x, axis, keepdims=keepdims, where=where)
    return uf.astype(uf.true_divide(total, _count(x, axis, keepdims, where)), target)


def _wide(dtype: DType) -> DType:
    return as_dtype("float32") if is_float(dtype) and dtype.itemsize < 4 else dtype


def _count(x: Array, axis: Axis, keepdims: bool, where: ArrayLike | None) -> ArrayLike:
    """How many elements are combined: a number, or an array where a mask decides."""
    if where is None:
        return math.prod(x.shape[i] for i in plain_axes(axis, x.ndim, "a mean"))
    mask = broadcast_to(as_value(where), pr.broadcast_shapes([x.shape, pr.shape_of(where)], "mean"))
    return sum(mask, axis, keepdims=keepdims)


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The mean squared distance from the mean along axes.

    Args:
        a: the array.
        axis: along which axes; None for all.
        dtype: of the result; a floating one by default.
        out: not supported.
        ddof: what is subtracted from the number of elements in the divisor.
        keepdims: whether the axes stay, with size 1.
        where: which elements count.
        mean: the mean, with the axes kept, where it is known.
        correction: another name of ``ddof``.
    """
    no_out(out, "var")
    x = as_value(a, "the argument of var")
    target = pr.inexact(x.dtype, False)[0] if dtype is None else allowed(dtype)
    x = pr.converted(x, _wide(target) if is_inexact_dtype(target) else allowed(float), False)
    middle = _mean_of(x, axis, where) if mean is None else as_value(mean)
    apart = uf.subtract(x, middle)
    if is_complex(apart.dtype):
        squares = uf.real(uf.multiply(apart, uf.conj(apart)))
    else:
        squares = uf.square(apart)
    total = sum(squares, axis, keepdims=keepdims, where=where)
    fewer = ddof if correction is None else correction
    count = _count(x, axis, keepdims, where)
    divisor: ArrayLike = count - fewer if isinstance(count, int) else uf.subtract(count, fewer)
    result = uf.true_divide(total, asarray(divisor, total.dtype))
    real = target if not is_complex(target) else result.dtype
    return uf.astype(result, real)


def _mean_of(x: Array, axis: Axis, where: ArrayLike | None) -> Array:
    return mean(x, axis, keepdims=True, where=where)


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The square root of the variance, whose derivative at 0 is taken for 0.

    The arguments are those of :func:`var`.
    """
    no_out(out, "std")
    spread = var(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return uf.flat_root(spread)


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The mean weighted by ``weights``, and where asked for, the sum of weights."""
    x = as_value(a, "the argument of average")
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        total: Array = uf.astype(uf.true_divide(x.size, result.size or 1), result.dtype)
    else:
        w = as_value(weights, "the weights of average")
        if w.shape != x.shape:
            if not isinstance(axis, int) or w.ndim != 1:
                raise IllTyped("average has weights of another shape", str(x.shape), str(w.shape))
            place = plain_axis(axis, x.ndim, "average")
            w = reshape(w, [x.shape[place] if i == place else 1 for i in range(x.ndim)])
        dtype = pr.inexact(*pr.common_dtype((x, w), "average"))[0]
        x, w = uf.astype(x, dtype), broadcast_to(uf.astype(w, dtype), x.shape)
        total = sum(w, axis, keepdims=keepdims)
        result = uf.true_divide(sum(uf.multiply(x, w), axis, keepdims=keepdims), total)
    return (result, broadcast_to(total, result.shape)) if returned else result


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first greatest element; nan counts as greatest."""
    return _position(a, axis, out, bool(keepdims), "argmax")


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first least element; nan counts as least."""
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
    index = allowed(int)
    prim = prims.Argmax(place, index) if what == "argmax" else prims.Argmin(place, index)
    found = bind1(prim, x)
    if not keepdims:
        return found
    return expand_dims(found, tuple(range(ndim)) if axis is None else place)


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running sums along an axis, or of all elements flattened."""
    no_out(out, "cumsum")
    x, place = _running(a, axis, dtype, "cumsum")
    return bind1(prims.CumSum(place), x)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running products along an axis, or of all elements flattened."""
    no_out(out, "cumprod")
    x, place = _running(a, axis, dtype, "cumprod")
    return bind1(prims.CumProd(place), x)


def _running(
    a: ArrayLike, axis: int | None, dtype: DTypeLike | None, what: str
) -> tuple[Array, int]:
    x = as_value(a, f"the argument of {what}")
    if dtype is not None:
        x = uf.astype(x, dtype)
    elif family(x.dtype) == "bool":
        x = uf.astype(x, default_dtype(None, int))
    if axis is None:
        return ravel(x), 0
    return x, plain_axis(axis, x.ndim, what)
