"""Means, variances and standard deviations."""

from __future__ import annotations

import math

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.axes import no_out, plain_axes
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import broadcast_to, reshape, transpose
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import DType, as_dtype, is_complex, is_float, is_inexact_dtype, real_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape
from effax.numpy import ufuncs as uf
from effax.numpy.reduce import REDUCTION, sum

__all__ = [
    "average", "mean", "std", "var",
]  # fmt: skip


@shared_docs(
    REDUCTION,
    "Array without the reduced axes.",
    dtype="dtype of the result; an inexact one by default.",
)
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Return the mean of the elements along ``axis``; floats below 32 bits accumulate in float32.

    >>> jnp.mean(jnp.array([1.0, 2.0, 6.0]))
    Array(3., dtype=float32)
    """
    no_out(out, "mean")
    x = as_value(a, "the argument of mean")
    target = pr.inexact(x.dtype, False)[0] if dtype is None else default_dtype(dtype)
    work = _wide(target) if is_inexact_dtype(target) else default_dtype(float)
    x = pr.converted(uf.astype(x, work), work, False)
    total = sum(x, axis, keepdims=keepdims, where=where)
    return uf.astype(uf.true_divide(total, _count(x, axis, keepdims, where)), target)


def _wide(dtype: DType) -> DType:
    return as_dtype("float32") if is_float(dtype) and dtype.itemsize < 4 else dtype


def _count(x: Array, axis: Axis, keepdims: bool, where: ArrayLike | None) -> ArrayLike:
    """Return the number of combined elements: a number, or an array where there is a mask."""
    if where is None:
        return math.prod(x.shape[i] for i in plain_axes(axis, x.ndim, "a mean"))
    mask = broadcast_to(as_value(where), pr.broadcast_shapes([x.shape, pr.shape_of(where)], "mean"))
    return sum(mask, axis, keepdims=keepdims)


@shared_docs(
    REDUCTION,
    "Floating array without the reduced axes; nan where at most ``ddof`` elements are combined.",
    dtype="dtype of the result; a floating one by default.",
)
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
    """Return the variance of the elements along ``axis``.

    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "var")
    x = as_value(a, "the argument of var")
    target = pr.inexact(x.dtype, False)[0] if dtype is None else default_dtype(dtype)
    if dtype is not None and is_complex(x.dtype) and not is_complex(target):
        raise IllTyped("var sums complex numbers in a complex dtype", "a complex one", str(target))
    if correction is not None and ddof != 0:
        raise BadArgument("ddof and correction of var mean the same", "one of them")
    x = pr.converted(x, _wide(target) if is_inexact_dtype(target) else default_dtype(float), False)
    middle = _mean_of(x, axis, where) if mean is None else as_value(mean)
    apart = uf.subtract(x, middle)
    if is_complex(apart.dtype):
        squares = uf.real(uf.multiply(apart, uf.conj(apart)))
    else:
        squares = uf.square(apart)
    total = sum(squares, axis, keepdims=keepdims, where=where)
    divisor = _divisor(_count(x, axis, keepdims, where), ddof if correction is None else correction)
    result = uf.true_divide(total, asarray(divisor, total.dtype))
    return uf.astype(result, real_dtype(target) if dtype is None else target)


def _divisor(count: ArrayLike, fewer: int | float) -> ArrayLike:
    """Return ``count - fewer``, and nan where no degree of freedom is left."""
    if isinstance(count, int):
        return count - fewer if count > fewer else math.nan
    left = uf.subtract(count, fewer)
    return uf.where(uf.greater(left, 0), left, math.nan)


def _mean_of(x: Array, axis: Axis, where: ArrayLike | None) -> Array:
    return mean(x, axis, keepdims=True, where=where)


def _along_axes(w: Array, shape: Shape, axis: Axis) -> Array:
    """Return weights of the axes in the order that ``axis`` names, with the others of size 1."""
    axes = () if axis is None else plain_axes(axis, len(shape), "average")
    if w.shape != tuple(shape[i] for i in axes) or not axes:
        raise IllTyped("average: the weights do not fit", str(shape), str(w.shape))
    ordered = transpose(w, tuple(axes.index(i) for i in sorted(axes)))
    return reshape(ordered, [n if i in axes else 1 for i, n in enumerate(shape)])


@shared_docs(
    REDUCTION,
    "Floating array without the reduced axes.",
    dtype="dtype of the result; a floating one by default.",
)
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
    """Return the standard deviation along ``axis``; its derivative at 0 is defined as 0.

    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "std")
    spread = var(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return uf.magnitude(spread)


@shared_docs(
    REDUCTION,
    "Inexact array without the reduced axes, or a pair of it and the sum of weights.",
    weights="weights of the shape of ``a``, or a vector along ``axis``; None for equal ones.",
    returned="whether to return the sum of weights as well.",
)
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Return the weighted mean of the elements along ``axis``.

    Raises:
        IllTyped: ``weights`` has another shape.

    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    x = as_value(a, "the argument of average")
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        total: Array = uf.astype(uf.true_divide(x.size, result.size or 1), result.dtype)
    else:
        w = as_value(weights, "the weights of average")
        if w.shape != x.shape:
            w = _along_axes(w, x.shape, axis)
        dtype = pr.inexact(*pr.common_dtype((x, w), "average"))[0]
        x, w = uf.astype(x, dtype), broadcast_to(uf.astype(w, dtype), x.shape)
        total = sum(w, axis, keepdims=keepdims)
        result = uf.true_divide(sum(uf.multiply(x, w), axis, keepdims=keepdims), total)
    return (result, broadcast_to(total, result.shape)) if returned else result
