"""Products with logarithms, entropies, and the logistic function and its inverse."""

from __future__ import annotations

import math

from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.predicates import isfinite, isinf, isnan, isposinf
from effax.scipy.formulas import floats, numbers, slopes

__all__ = ["entr", "expit", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"]

PAIR = {
    "x": "factor, array or scalar.",
    "y": "operand of the logarithm, array or scalar.",
    "p": "probabilities, array or scalar.",
    "q": "reference probabilities, array or scalar.",
}
RESULT = "Floating array of the broadcast shape."


def expit(x: ArrayLike) -> Array:
    """Return the logistic function ``1 / (1 + exp(-x))``.

    >>> special.expit(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return el.logistic(numbers("expit", x)[0])


@slopes(lambda y, x: uf.true_divide(1, uf.multiply(x, uf.subtract(1, x))))
def _logit(x: Array) -> Array:
    # 2x - 1 is exact where x >= 1/4, and atanh(2x - 1) does not cancel at 1/2.
    near = uf.multiply(2, uf.arctanh(uf.subtract(uf.multiply(2, x), 1)))
    return uf.where(uf.less(x, 0.25), uf.log(uf.true_divide(x, uf.subtract(1, x))), near)


def logit(x: ArrayLike) -> Array:
    """Return ``log(x / (1 - x))``, the inverse of ``expit``. Raises IllTyped for a complex ``x``.

    >>> special.logit(jnp.array([0.5, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    return _logit(*floats("logit", x))


@shared_docs(PAIR, "Inexact array of the broadcast shape.")
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x * log(y)``; 0 where ``x`` is 0, unless ``y`` is nan.

    >>> special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([0., 0.], dtype=float32)
    """
    a, b = numbers("xlogy", x, y)
    return _times_logarithm(a, b, uf.log, 1)


@shared_docs(PAIR, "Inexact array of the broadcast shape.")
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x * log(1 + y)``; 0 where ``x`` is 0, unless ``y`` is nan.

    >>> special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
    Array([0., 0.], dtype=float32)
    """
    a, b = numbers("xlog1py", x, y)
    return _times_logarithm(a, b, uf.log1p, 0)


def _times_logarithm(x: Array, y: Array, logarithm: uf.UnaryFunction, one: int) -> Array:
    infinite = uf.invert(isfinite(logarithm(y)))
    flat = uf.bitwise_and(uf.bitwise_and(uf.equal(x, 0), infinite), uf.invert(isnan(y)))
    product = uf.multiply(x, logarithm(uf.where(flat, one, y)))
    return uf.where(flat, 0, product)


def entr(x: ArrayLike) -> Array:
    """Return the elementwise entropy ``-x * log(x)``; 0 at 0 and -inf below.

    Raises:
        IllTyped: ``x`` is complex.

    >>> special.entr(jnp.array([0.0, 1.0, -1.0]))
    Array([  0.,  -0., -inf], dtype=float32)
    """
    (value,) = floats("entr", x)
    return _entr(value)


@slopes(lambda y, x: uf.where(uf.less(x, 0), 0, uf.subtract(-1, uf.log(x))))
def _entr(x: Array) -> Array:
    zero = uf.equal(x, 0)
    product = uf.negative(uf.multiply(x, uf.log(uf.where(zero, 1, x))))
    return uf.where(zero, 0, uf.where(uf.less(x, 0), -math.inf, product))


@shared_docs(PAIR, RESULT)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the elementwise relative entropy ``p * log(p / q)``.

    It is 0 where ``p`` is 0 and ``q`` is not negative, and inf elsewhere beyond positive operands.

    Raises:
        IllTyped: an operand is complex.

    >>> special.rel_entr(jnp.array([0.0, 2.0]), jnp.array([1.0, 2.0]))
    Array([0., 0.], dtype=float32)
    """
    return _rel_entr(*floats("rel_entr", p, q))


def _positive(x: Array) -> Array:
    return uf.greater(x, 0)


@slopes(
    lambda y, p, q: uf.where(
        uf.bitwise_and(_positive(p), _positive(q)), uf.add(_log_ratio(p, q), 1), 0
    ),
    lambda y, p, q: uf.where(
        uf.bitwise_and(_positive(p), _positive(q)), uf.negative(uf.true_divide(p, q)), 0
    ),
)
def _rel_entr(p: Array, q: Array) -> Array:
    inside = uf.bitwise_and(_positive(p), _positive(q))
    empty = uf.bitwise_and(uf.equal(p, 0), uf.greater_equal(q, 0))
    value = uf.multiply(p, _log_ratio(p, q))
    outside = uf.where(empty, 0, math.inf)
    invalid = uf.bitwise_or(isnan(p), isnan(q))
    return uf.where(invalid, math.nan, uf.where(inside, value, outside))


def _log_ratio(p: Array, q: Array) -> Array:
    """Return log(p / q), accurate near 1, and without overflow."""
    ratio = uf.true_divide(p, q)
    close = uf.less(uf.absolute(uf.subtract(p, q)), uf.multiply(0.5, q))
    near = uf.log1p(uf.true_divide(uf.subtract(p, q), q))
    extreme = uf.bitwise_or(uf.equal(ratio, 0), uf.invert(isfinite(ratio)))
    apart = uf.where(extreme, uf.subtract(uf.log(p), uf.log(q)), uf.log(ratio))
    return uf.where(close, near, apart)


@shared_docs(PAIR, RESULT)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the elementwise Kullback-Leibler divergence ``p * log(p / q) - p + q``.

    Raises:
        IllTyped: an operand is complex.

    >>> special.kl_div(jnp.array([0.0, 2.0]), jnp.array([1.0, 2.0]))
    Array([1., 0.], dtype=float32)
    """
    return _kl_div(*floats("kl_div", p, q))


@slopes(
    lambda y, p, q: uf.where(uf.bitwise_and(_positive(p), _positive(q)), _log_ratio(p, q), 0),
    lambda y, p, q: uf.where(
        uf.greater_equal(p, 0), uf.subtract(1, uf.true_divide(p, uf.where(_positive(q), q, 1))), 0
    ),
)
def _kl_div(p: Array, q: Array) -> Array:
    return deviance(p, q)


def deviance(p: Array, q: Array) -> Array:
    """Return p·log(p/q) - p + q, which does not cancel for p near q.

    With v = (p - q)/(p + q) it is (p - q)·v + 2p·Σ v^(2j+1)/(2j + 1) for j >= 1 (C. Loader, "Fast
    and accurate computation of binomial probabilities", 2000).
    """
    v = uf.true_divide(uf.subtract(p, q), uf.add(p, q))
    close = uf.bitwise_and(uf.less(uf.absolute(v), 0.1), _positive(p))
    square = uf.where(close, uf.square(v), 0)
    total = uf.multiply(square, 1 / 19)
    for j in range(8, 0, -1):
        total = uf.multiply(square, uf.add(total, 1 / (2 * j + 1)))
    near = uf.multiply(v, uf.add(uf.subtract(p, q), uf.multiply(uf.multiply(2, p), total)))
    whole = _rel_entr(p, q)
    apart = uf.add(uf.subtract(whole, p), q)
    infinite = uf.bitwise_and(uf.bitwise_xor(isinf(p), isinf(q)), uf.invert(isnan(whole)))
    apart = uf.where(uf.bitwise_or(infinite, isposinf(whole)), math.inf, apart)
    return uf.where(close, near, apart)
