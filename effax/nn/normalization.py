"""Functions along axes: softmax, logarithms of sums of exponentials, one-hot, standardization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from effax.arrays import creation
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.axes import plain_axes, plain_axis, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import broadcast_to, expand_dims, reshape
from effax.ir.dtypes import family, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota, ReduceMax
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.reduce import max, sum
from effax.numpy.statistics import mean

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]


def _inexact(x: ArrayLike, what: str) -> Array:
    value = as_value(x, f"the argument of {what}")
    return pr.converted(value, *pr.inexact(value.dtype, value.weak_type))


def _where_else(where: ArrayLike | None, x: Array, fill: float) -> Array:
    return x if where is None else uf.where(where, x, fill)


def _greatest(x: Array, axis: Axis) -> Array:
    """Return the largest elements, axes kept, as constants; 0 where they are infinite.

    A function of x - greatest that does not depend on greatest needs no derivative of it.
    """
    top = max(uf.real(x), axis, keepdims=True, initial=float("-inf"))
    finite = uf.less(uf.absolute(top), float("inf"))
    return el.stop_gradient(uf.masked(finite, top))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return ``exp(x) / sum(exp(x), axis)``.

    Args:
        x: array or scalar.
        axis: axis or axes to normalize; None for all.
        where: boolean mask of the elements to include; the others are 0.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    value = _where_else(where, _inexact(x, "softmax"), float("-inf"))
    weights = uf.exp(uf.subtract(value, _greatest(value, axis)))
    result = uf.true_divide(weights, sum(weights, axis, keepdims=True))
    return _where_else(where, result, 0)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return ``log(softmax(x))``.

    Args:
        x: array or scalar.
        axis: axis or axes to normalize; None for all.
        where: boolean mask of the elements to include; the others are -inf.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.log_softmax(jnp.array([0.0, -jnp.inf]))
    Array([  0., -inf], dtype=float32)
    """
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
    """Return ``log(sum(b * exp(a)))`` along ``axis``, without overflow.

    Where the largest exponent is infinite, those equal to it share the derivative.

    Args:
        a: exponents.
        axis: axis or axes to reduce; None reduces all.
        b: factors that broadcast with ``a``, 1 by default.
        keepdims: whether reduced axes remain with size 1.
        return_sign: whether to return the sign of the sum as well; else a negative sum is nan.
        where: boolean mask of the elements to include; broadcasts with ``a``.

    Returns:
        Inexact array without the reduced axes, or a pair of it and the signs.

    >>> nn.logsumexp(jnp.array([0.0, -jnp.inf]))
    Array(0., dtype=float32)
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
    """Return exponents with zeros where the largest along axes is infinite, and the result there.

    The second part is a mask and the largest exponent. With factors, only the case that all
    exponents are -inf is separate.
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
    """Return ``log(mean(exp(x)))`` along ``axis``, without overflow.

    Args:
        x: array or scalar.
        axis: axis or axes to reduce; None reduces all.
        where: boolean mask of the elements to include.
        keepdims: whether reduced axes remain with size 1.

    Returns:
        Inexact array without the reduced axes.

    >>> nn.logmeanexp(jnp.array([0.0, 0.0]))
    Array(0., dtype=float32)
    """
    value = _inexact(x, "logmeanexp")
    there = broadcast_to(True if where is None else where, value.shape)
    count = sum(uf.astype(there, value.dtype), axis, keepdims=keepdims)
    return uf.subtract(logsumexp(value, axis, keepdims=keepdims, where=where), uf.log(count))


def one_hot(
    x: ArrayLike | Sequence[int],
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: object = None,
) -> Array:
    """Return one-hot vectors of integer labels, along a new axis.

    Args:
        x: integer labels, an array or a sequence; those out of range become zeros.
        num_classes: size of the new axis.
        dtype: dtype of the result, float32 by default.
        axis: position of the new axis.
        out_sharding: sharding of the result.

    Returns:
        Array of the shape of ``x`` with a new axis.

    Raises:
        IllTyped: the labels are not integers.

    >>> nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    labels = creation.asarray(x) if isinstance(x, Sequence) else as_value(x, "the labels")
    if family(labels.dtype) not in ("int", "uint"):
        raise IllTyped(
            "the labels of one_hot are not integers", "an integer dtype", str(labels.type)
        )
    place = plain_axis(axis, labels.ndim + 1, "one_hot")
    sizes = [1] * (labels.ndim + 1)
    sizes[place] = static_int(num_classes, "num_classes")
    positions = bind1(Iota(labels.dtype, tuple(sizes), place))
    made = uf.astype(uf.equal(expand_dims(labels, place), positions), default_dtype(dtype))
    return on_device(made, out_sharding, "one_hot")


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
    """Return ``(x - mean) / sqrt(variance + epsilon)``.

    Args:
        x: array or scalar.
        axis: axis or axes over which to take mean and variance.
        mean: precomputed mean.
        variance: precomputed variance.
        epsilon: added to the variance.
        where: boolean mask of the elements to include in mean and variance.
        algorithm: "fast" for E[x²] - E[x]², "stable" for E[(x - E[x])²].

    Returns:
        Inexact array of the shape of ``x``.

    Raises:
        BadArgument: an unknown algorithm.

    >>> nn.standardize(jnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise BadArgument("unknown algorithm of standardize", "'fast' or 'stable'", repr(algorithm))
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
