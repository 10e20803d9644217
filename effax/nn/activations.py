"""Elementwise functions of neural networks."""

from __future__ import annotations

import math

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.conversion import as_value
from effax.ir.errors import IllTyped
from effax.lax import elementwise as el
from effax.numpy import arithmetic as ar
from effax.numpy import special as sp
from effax.numpy import ufuncs as uf
from effax.numpy.join import split
from effax.numpy.predicates import isinf

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "swish", "tanh",
]  # fmt: skip


def _inexact(x: ArrayLike, what: str) -> Array:
    value = as_value(x, f"the argument of {what}")
    return pr.converted(value, *pr.inexact(value.dtype, value.weak_type))


def identity(x: ArrayLike) -> Array:
    """Return ``x`` as an array.

    >>> nn.identity(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    return as_value(x, "the argument of identity")


def relu(x: ArrayLike) -> Array:
    """Return ``max(x, 0)``, with derivative 0 at 0.

    >>> nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    value = as_value(x, "the argument of relu")
    return uf.masked(uf.invert(uf.less_equal(value, 0)), value)


def relu6(x: ArrayLike) -> Array:
    """Return ``min(max(x, 0), 6)``, with derivative 0 at 0 and at 6.

    >>> nn.relu6(jnp.array([-1.0, 8.0]))
    Array([0., 6.], dtype=float32)
    """
    value = relu(_inexact(x, "relu6"))
    return uf.masked(uf.invert(uf.greater_equal(value, 6)), value, 6)


def sigmoid(x: ArrayLike) -> Array:
    """Return ``1 / (1 + exp(-x))``.

    >>> nn.sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return el.logistic(_inexact(x, "sigmoid"))


def silu(x: ArrayLike) -> Array:
    """Return ``x * sigmoid(x)``.

    >>> nn.silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    value = _inexact(x, "silu")
    return uf.multiply(value, el.logistic(value))


swish = silu


def softplus(x: ArrayLike) -> Array:
    """Return ``log(1 + exp(x))``.

    >>> nn.softplus(jnp.array([-jnp.inf]))
    Array([0.], dtype=float32)
    """
    return sp.logaddexp(x, 0)


def log_sigmoid(x: ArrayLike) -> Array:
    """Return ``log(sigmoid(x))``.

    >>> nn.log_sigmoid(jnp.array([jnp.inf]))
    Array([-0.], dtype=float32)
    """
    return uf.negative(softplus(uf.negative(_inexact(x, "log_sigmoid"))))


def soft_sign(x: ArrayLike) -> Array:
    """Return ``x / (abs(x) + 1)``.

    >>> nn.soft_sign(jnp.array([1.0]))
    Array([0.5], dtype=float32)
    """
    value = as_value(x, "the argument of soft_sign")
    return uf.true_divide(value, uf.add(uf.absolute(value), 1))


def tanh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic tangent of ``x``.

    >>> nn.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return uf.tanh(x)


def hard_tanh(x: ArrayLike) -> Array:
    """Return ``x`` limited to [-1, 1].

    >>> nn.hard_tanh(jnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    value = as_value(x, "the argument of hard_tanh")
    return uf.where(uf.greater(value, 1), 1, uf.where(uf.less(value, -1), -1, value))


def hard_sigmoid(x: ArrayLike) -> Array:
    """Return ``relu6(x + 3) / 6``.

    >>> nn.hard_sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return uf.true_divide(relu6(uf.add(x, 3.0)), 6.0)


def hard_silu(x: ArrayLike) -> Array:
    """Return ``x * hard_sigmoid(x)``.

    >>> nn.hard_silu(jnp.array([3.0]))
    Array([3.], dtype=float32)
    """
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Args:
        x: array or scalar.
        alpha: scale of the negative part.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.elu(jnp.array([0.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    value = as_value(x, "the argument of elu")
    positive = uf.greater(value, 0)
    # Large values are masked: their exponential overflows, and derivatives become nan.
    low = uf.expm1(uf.where(positive, 0.0, value))
    return uf.where(positive, value, uf.multiply(alpha, low))


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return ``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``.

    Args:
        x: array or scalar.
        alpha: scale of the negative part.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.celu(jnp.array([0.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    value = as_value(x, "the argument of celu")
    positive = uf.greater(value, 0)
    # Large values are masked, as for elu; at 0 the second derivative is that from the left.
    low = uf.expm1(uf.true_divide(uf.where(positive, 0.0, value), alpha))
    return uf.where(positive, value, uf.multiply(alpha, low))


def selu(x: ArrayLike) -> Array:
    """Return the scaled ELU of ``x``, which preserves mean and variance.

    >>> nn.selu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return uf.multiply(1.0507009873554805, elu(x, 1.6732632423543772))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """Return ``x`` where it is nonnegative, else ``negative_slope * x``.

    Args:
        x: array or scalar.
        negative_slope: slope of the negative part.

    Returns:
        Array of the shape of ``x``.

    >>> nn.leaky_relu(jnp.array([-2.0, 2.0]), 0.5)
    Array([-1.,  2.], dtype=float32)
    """
    value = as_value(x, "the argument of leaky_relu")
    return uf.where(uf.greater_equal(value, 0), value, uf.multiply(negative_slope, value))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Return ``x * P(Z <= x)`` for a standard normal Z.

    Args:
        x: array or scalar.
        approximate: whether to approximate by tanh.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.gelu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    value = _inexact(x, "gelu")
    if not approximate:
        tail = el.erfc(el.mul(value, -math.sqrt(0.5)))
        return uf.multiply(uf.multiply(value, 0.5), tail)
    # Beyond, tanh is ±1 in every dtype, and the cube would overflow in float16.
    near = el.clamp(-12.0, value, 12.0)
    inner = uf.add(near, uf.multiply(0.044715, ar.power(near, 3)))
    chance = uf.multiply(0.5, uf.add(1.0, uf.tanh(uf.multiply(math.sqrt(2 / math.pi), inner))))
    return uf.multiply(value, chance)


def mish(x: ArrayLike) -> Array:
    """Return ``x * tanh(softplus(x))``.

    >>> nn.mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    value = _inexact(x, "mish")
    return uf.multiply(value, uf.tanh(softplus(value)))


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Return ``(x + sqrt(x**2 + b)) / 2``.

    Args:
        x: array or scalar.
        b: smoothness.

    Returns:
        Inexact array of the shape of ``x``.

    >>> nn.squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    value = _inexact(x, "squareplus")
    # The square of x overflows where the result does not: both are divided by a constant.
    finite = uf.invert(isinf(value))
    bounded = uf.masked(finite, value)
    scale = el.stop_gradient(uf.maximum(uf.absolute(bounded), 1))
    part = uf.true_divide(bounded, scale)
    rest = uf.true_divide(b, scale)
    root = uf.sqrt(uf.add(uf.square(part), uf.true_divide(rest, scale)))
    # scale·(part + root) = rest/(root - part), which does not cancel for a negative part
    below = uf.less(part, 0)
    low = uf.true_divide(uf.multiply(0.5, rest), uf.subtract(root, uf.where(below, part, -1)))
    high = uf.multiply(scale, uf.multiply(0.5, uf.add(part, root)))
    return uf.where(finite, uf.where(below, low, high), uf.maximum(value, 0))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Return the first half of ``x`` along an axis times the sigmoid of the second.

    Args:
        x: array or scalar.
        axis: axis to split, of even size.

    Returns:
        Inexact array of half the size along ``axis``.

    Raises:
        IllTyped: the size of ``axis`` is odd.

    >>> nn.glu(jnp.array([4.0, 0.0]))
    Array([2.], dtype=float32)
    """
    value = _inexact(x, "glu")
    place = plain_axis(axis, value.ndim, "glu")
    if value.shape[place] % 2:
        raise IllTyped("glu takes an axis of even size", "an even size", str(value.type))
    first, second = split(value, 2, place)
    return uf.multiply(first, el.logistic(second))


def log1mexp(x: ArrayLike) -> Array:
    """Return ``log(1 - exp(-x))`` for ``x > 0``, accurate near 0 and for large ``x``.

    Source: M. Mächler, "Accurately computing log(1 - exp(-|a|))" (2012).

    >>> nn.log1mexp(jnp.array([1.0]))
    Array([-0.4586751], dtype=float32)
    """
    value = _inexact(x, "log1mexp")
    near = uf.less(value, math.log(2))
    # Each formula is given a point of its own domain where the other one is used.
    small, large = uf.where(near, value, 1), uf.where(near, 1, value)
    by_expm1 = uf.log(uf.negative(uf.expm1(uf.negative(small))))
    return uf.where(near, by_expm1, uf.log1p(uf.negative(uf.exp(uf.negative(large)))))


def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 for ``x <= -1``, ``x`` for ``x >= 1`` and ``(x + 1)² / 4`` between.

    >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    value = _inexact(x, "sparse_plus")
    between = uf.multiply(uf.square(uf.add(value, 1)), 0.25)
    right = uf.where(uf.greater_equal(value, 1), value, between)
    return uf.where(uf.less_equal(value, -1), 0, right)


def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return 0 for ``x <= -1``, 1 for ``x >= 1`` and ``(x + 1) / 2`` between.

    It is the derivative of :func:`sparse_plus`.

    >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    value = _inexact(x, "sparse_sigmoid")
    return ar.clip(uf.multiply(uf.add(value, 1), 0.5), 0, 1)
