"""Functions along axes: softmax and its logarithm, sums of exponentials, one-hot, scaling."""

from __future__ import annotations

from typing import Literal, overload

from effax.arrays.binding import bind1
from effax.arrays.device_array import Array, ArrayLike, Axis, DTypeLike, as_value
from effax.ir.dtypes import family, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota, ReduceMax
from effax.lax import elementwise as el
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_axes, plain_axis, static_int
from effax.numpy.dtypes import default_dtype
from effax.numpy.reduce import max, sum
from effax.numpy.shapes import broadcast_to, expand_dims, reshape
from effax.numpy.statistics import mean


def _inexact(x: ArrayLike, what: str) -> Array:
    value = as_value(x, f"the argument of {what}")
    return pr.converted(value, *pr.inexact(value.dtype, value.weak_type))


def _where_else(where: ArrayLike | None, x: Array, fill: float) -> Array:
    return x if where is None else uf.where(where, x, fill)


def _greatest(x: Array, axis: Axis) -> Array:
    """The greatest elements, axes kept, as constants; 0 where they are infinite.

    What is computed from x - greatest does not depend on it, so it needs no derivative.
    """
    top = max(uf.real(x), axis, keepdims=True, initial=float("-inf"))
    finite = uf.less(uf.absolute(top), float("inf"))
    return el.stop_gradient(uf.masked(finite, top))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x), scaled so that its sum along axes is 1.

    Args:
        x: the array.
        axis: along which axes; None for all.
        where: which elements count; the others give 0.
    """
    value = _where_else(where, _inexact(x, "softmax"), float("-inf"))
    weights = uf.exp(uf.subtract(value, _greatest(value, axis)))
    result = uf.true_divide(weights, sum(weights, axis, keepdims=True))
    return _where_else(where, result, 0)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of :func:`softmax`; masked elements give -inf."""
    value = _where_else(where, _inexact(x, "log_softmax"), float("-inf"))
    shifted = uf.subtract(value, _greatest(value, axis))
    total = uf.log(sum(uf.exp(shifted), axis, keepdims=True))
    return _where_else(where, uf.subtract(shifted, total), float("-inf"))


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log(sum(b · exp(a))) along axes, without overflow.

    Where the greatest exponent is infinite, those that are equal to it share the derivative.

    Args:
        a: the exponents.
        axis: along which axes; None for all.
        b: factors, 1 by default.
        keepdims: whether the axes stay, with size 1.
        return_sign: whether the sign of the sum is a second result; else the logarithm of a
            negative sum is nan.
        where: which elements count.
    """
    dtype, weak = pr.inexact(*pr.common_dtype([x for x in (a, b) if x is not None], "logsumexp"))
    value = _where_else(where, pr.converted(as_value(a), dtype, weak), float("-inf"))
    factor = None if b is None else pr.converted(as_value(b), dtype, weak)
    if factor is not None:
        value = uf.where(uf.not_equal(factor, 0), value, float("-inf"))
    axes = plain_axes(axis, value.ndim, "logsumexp")
    limit: tuple[Array, Array] | None = None
    if not is_complex(dtype) and not return_sign:
        value, limit = _apart_from_limits(value, axes, keepdims, factor is not None)
    top = _greatest(value, axes)
    terms = uf.exp(uf.subtract(value, top))
    total = sum(terms if factor is None else uf.multiply(terms, factor), axes, keepdims=keepdims)
    offset = top if keepdims else reshape(top, total.shape)
    sign = uf.sign(total)
    size = uf.absolute(total) if return_sign or not is_complex(dtype) else total
    result = uf.add(uf.log(size), offset)
    if return_sign:
        return result, sign
    if factor is not None and not is_complex(dtype):
        result = uf.where(uf.less(sign, 0), float("nan"), result)
    return result if limit is None else uf.where(limit[0], limit[1], result)


def _apart_from_limits(
    x: Array, axes: tuple[int, ...], keepdims: bool, factors: bool
) -> tuple[Array, tuple[Array, Array]]:
    """Exponents with zeros along axes where the greatest is infinite, and what they give there.

    The second part says where that is, and the greatest exponent. Factors have a say in
    everything but the case that all exponents are -inf.
    """
    extreme = expand_dims(bind1(ReduceMax(axes), x), axes)
    at_limit = uf.equal(extreme if factors else uf.absolute(extreme), _LIMIT[factors])
    safe = uf.masked(uf.invert(broadcast_to(at_limit, x.shape)), x)
    if not keepdims:
        shape = [n for i, n in enumerate(extreme.shape) if i not in axes]
        extreme, at_limit = reshape(extreme, shape), reshape(at_limit, shape)
    return safe, (at_limit, extreme)


_LIMIT = {True: float("-inf"), False: float("inf")}


def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) along axes, without overflow."""
    value = _inexact(x, "logmeanexp")
    there = broadcast_to(True if where is None else where, value.shape)
    count = sum(uf.astype(there, value.dtype), axis, keepdims=keepdims)
    return uf.subtract(logsumexp(value, axis, keepdims=keepdims, where=where), uf.log(count))


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Array:
    """1 at the position that each integer names, along a new axis; 0 elsewhere.

    An integer that names no position gives zeros.
    """
    labels = as_value(x, "the labels")
    if family(labels.dtype) not in ("int", "uint"):
        raise IllTyped("labels are integers", "an integer dtype", str(labels.type))
    place = plain_axis(axis, labels.ndim + 1, "one_hot")
    sizes = [1] * (labels.ndim + 1)
    sizes[place] = static_int(num_classes, "num_classes")
    positions = bind1(Iota(labels.dtype, tuple(sizes), place))
    return uf.astype(uf.equal(expand_dims(labels, place), positions), default_dtype(dtype))


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon).

    Args:
        x: the array.
        axis: along which axes mean and variance are taken.
        mean: the mean, where it is known.
        variance: the variance, where it is known.
        epsilon: keeps the divisor from 0.
        where: which elements count for mean and variance.
        algorithm: "fast" for the mean of squares minus the square of the mean, "stable" for the
            mean of squared distances.
    """
    if algorithm not in ("fast", "stable"):
        raise BadArgument("standardize knows two algorithms", "'fast' or 'stable'", repr(algorithm))
    value = _inexact(x, "standardize")
    middle = _mean(value, axis, where) if mean is None else mean
    if variance is None:
        if algorithm == "stable":
            variance = _mean(uf.square(uf.subtract(value, middle)), axis, where)
        else:
            squares = _mean(uf.square(value), axis, where)
            # Rounding can make the difference negative.
            variance = uf.maximum(uf.subtract(squares, uf.square(middle)), 0)
    return uf.multiply(uf.subtract(value, middle), el.rsqrt(uf.add(variance, epsilon)))


def _mean(x: Array, axis: Axis, where: ArrayLike | None) -> Array:
    return mean(x, axis, keepdims=True, where=where)
