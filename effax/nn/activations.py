"""Elementwise functions of neural networks."""

from __future__ import annotations

import math

from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir.errors import IllTyped
from effax.lax import elementwise as el
from effax.numpy import arithmetic as ar
from effax.numpy import promotion as pr
from effax.numpy import special as sp
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_axis
from effax.numpy.join import split


def _inexact(x: ArrayLike, what: str) -> Array:
    value = as_value(x, f"the argument of {what}")
    return pr.converted(value, *pr.inexact(value.dtype, value.weak_type))


def identity(x: ArrayLike) -> Array:
    """x."""
    return as_value(x, "the argument of identity")


def relu(x: ArrayLike) -> Array:
    """max(x, 0), with derivative 0 at 0."""
    value = as_value(x, "the argument of relu")
    return uf.masked(uf.invert(uf.less_equal(value, 0)), value)


def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), with derivative 0 at 0 and at 6."""
    value = relu(_inexact(x, "relu6"))
    return uf.masked(uf.invert(uf.greater_equal(value, 6)), value, 6)


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x))."""
    return el.logistic(_inexact(x, "sigmoid"))


def silu(x: ArrayLike) -> Array:
    """x · sigmoid(x)."""
    value = _inexact(x, "silu")
    return uf.multiply(value, el.logistic(value))


swish = silu


def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x))."""
    return sp.logaddexp(x, 0)


def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x))."""
    return uf.negative(softplus(uf.negative(_inexact(x, "log_sigmoid"))))


def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1)."""
    value = as_value(x, "the argument of soft_sign")
    return uf.true_divide(value, uf.add(uf.absolute(value), 1))


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
    return uf.tanh(x)


def hard_tanh(x: ArrayLike) -> Array:
    """x moved into the interval from -1 to 1."""
    value = as_value(x, "the argument of hard_tanh")
    return uf.where(uf.greater(value, 1), 1, uf.where(uf.less(value, -1), -1, value))


def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6."""
    return uf.true_divide(relu6(uf.add(x, 3.0)), 6.0)


def hard_silu(x: ArrayLike) -> Array:
    """x · hard_sigmoid(x)."""
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha · (exp(x) - 1)."""
    value = as_value(x, "the argument of elu")
    positive = uf.greater(value, 0)
    # Not of large values, whose exponential overflows and makes derivatives nan.
    low = uf.expm1(uf.where(positive, 0.0, value))
    return uf.where(positive, value, uf.multiply(alpha, low))


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha · (exp(min(x, 0) / alpha) - 1)."""
    low = uf.expm1(uf.true_divide(uf.minimum(x, 0.0), alpha))
    return uf.add(uf.maximum(x, 0.0), uf.multiply(alpha, low))


def selu(x: ArrayLike) -> Array:
    """The elu that keeps mean and variance."""
    return uf.multiply(1.0507009873554805, elu(x, 1.6732632423543772))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where it is not negative, else negative_slope · x."""
    value = as_value(x, "the argument of leaky_relu")
    return uf.where(uf.greater_equal(value, 0), value, uf.multiply(negative_slope, value))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x · P(Z <= x) for a normal Z, or its approximation by tanh."""
    value = _inexact(x, "gelu")
    if not approximate:
        tail = el.erfc(el.mul(value, -math.sqrt(0.5)))
        return uf.multiply(uf.multiply(value, 0.5), tail)
    inner = uf.add(value, uf.multiply(0.044715, ar.power(value, 3)))
    chance = uf.multiply(0.5, uf.add(1.0, uf.tanh(uf.multiply(math.sqrt(2 / math.pi), inner))))
    return uf.multiply(value, chance)


def mish(x: ArrayLike) -> Array:
    """x · tanh(softplus(x))."""
    value = _inexact(x, "mish")
    return uf.multiply(value, uf.tanh(softplus(value)))


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2."""
    return uf.true_divide(uf.add(x, uf.sqrt(uf.add(uf.square(x), b))), 2)


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second."""
    value = _inexact(x, "glu")
    place = plain_axis(axis, value.ndim, "glu")
    if value.shape[place] % 2:
        raise IllTyped("glu halves an axis", "an even size", str(value.type))
    first, second = split(value, 2, place)
    return uf.multiply(first, el.logistic(second))
