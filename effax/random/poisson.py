"""Random samples of the Poisson distribution."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import full, zeros
from effax.arrays.shapes import broadcast_to
from effax.ir.dtypes import DType, int_bounds, is_float
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.special import lgamma
from effax.lax.whiles import while_loop
from effax.numpy import ufuncs as uf
from effax.numpy.reduce import all as all_along
from effax.numpy.reduce import any as any_along
from effax.random.arguments import chosen, integral, placed, sample_shape
from effax.random.distributions import normal
from effax.random.gamma import METHODS
from effax.random.generators import checked
from effax.random.keys import several
from effax.random.uniform import uniform

__all__ = ["poisson"]

Carry = tuple[Array, Array, Array, Array]

SMALL: Final = 10.0
"""Means below are sampled by multiplication of uniform samples, others by rejection."""


@placed
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Return samples of the Poisson distribution: numbers of events of mean ``lam``.

    Args:
        key: random key, or its words.
        lam: mean of the samples; -1 is returned where it is nan.
        shape: shape of the result, that of ``lam`` by default.
        dtype: integer dtype, int32 by default.
        method: "exact"; "approximate": by an approximation of the quantile, without loops.
        out_sharding: sharding of the result.

    Returns:
        Integer array of shape ``shape``.

    Raises:
        IllTyped: the dtype is not of integers, or ``lam`` does not broadcast.
        BadArgument: an unknown method.

    >>> random.poisson(random.key(0), 0.0, (2,))
    Array([0, 0], dtype=int32)
    """
    kind = integral(dtype, "poisson")
    chosen(method, METHODS, "method of poisson")
    sizes = sample_shape(shape, "poisson", lam)
    parent, mean = checked(key, "poisson"), as_value(lam, "lam of poisson")
    if method == "approximate":
        wide = (is_float(mean.dtype) and mean.dtype.itemsize > 4) or kind.itemsize > 4
        work = np.dtype(np.float64 if wide else np.float32)
        z = normal(parent, sizes, work)
        return uf.astype(_of_normal(z, broadcast_to(uf.astype(mean, work), sizes)), kind)
    mean = broadcast_to(uf.astype(mean, np.float32), sizes)
    small = el.bitwise_or(el.ne(mean, mean), el.lt(mean, SMALL))
    products = _of_products(parent, el.select(small, mean, 0.0), sizes, kind)
    # The samples of small means are not used: any great mean is accepted soon.
    rejection = _of_rejection(parent, el.select(small, 1e5, mean), sizes, kind)
    samples = el.select(small, products, rejection)
    return el.select(el.eq(mean, 0.0), zeros(sizes, kind), samples)


def _of_products(key: Array, mean: Array, shape: Shape, dtype: DType) -> Array:
    """Return how many uniform samples have a product above ``exp(-mean)``.

    Source: Knuth, "Seminumerical algorithms", 3.4.1.
    """
    most = int_bounds(dtype)[1]

    def unfinished(state: Carry) -> Array:
        i, _, _, logarithm = state
        return el.bitwise_and(any_along(el.gt(logarithm, el.neg(mean))), el.lt(i, most))

    def step(state: Carry) -> Carry:
        i, count, key, logarithm = state
        key, sub = several(key, 2)
        count = el.select(el.gt(logarithm, el.neg(mean)), el.add(count, 1), count)
        u = uniform(sub, shape, np.float32)
        return el.add(i, 1), count, key, el.add(logarithm, el.log(u))

    start = (zeros((), dtype), zeros(shape, dtype), key, zeros(shape, np.float32))
    return el.sub(while_loop(unfinished, step, start)[1], 1)


def _of_rejection(key: Array, mean: Array, shape: Shape, dtype: DType) -> Array:
    """Return samples of means of 10 or more by transformed rejection.

    Source: Hörmann, "The transformed rejection method for generating Poisson random variables"
    (1993).
    """
    most = int_bounds(dtype)[1]
    log_mean = el.log(mean)
    b = el.add(el.mul(el.sqrt(mean), 2.53), 0.931)
    a = el.add(el.mul(b, 0.02483), -0.059)
    inverse = el.add(el.div(1.1328, el.sub(b, 3.4)), 1.1239)
    inside = el.sub(0.9277, el.div(3.6224, el.sub(b, 2.0)))

    def unfinished(state: Carry) -> Array:
        i, _, accepted, _ = state
        return el.bitwise_and(el.bitwise_not(all_along(accepted)), el.lt(i, most))

    def step(state: Carry) -> Carry:
        i, found, accepted, key = state
        key, first, second = several(key, 3)
        u = el.sub(uniform(first, shape, mean.dtype), 0.5)
        v = uniform(second, shape, mean.dtype)
        away = el.sub(0.5, el.abs(u))
        slope = el.add(el.div(el.mul(a, 2.0), away), b)
        k = el.floor(el.add(el.add(el.mul(slope, u), mean), 0.43))
        height = el.add(el.div(a, el.mul(away, away)), b)
        s = el.log(el.div(el.mul(v, inverse), height))
        t = el.sub(el.add(el.neg(mean), el.mul(k, log_mean)), lgamma(el.add(k, 1.0)))
        squeezed = el.bitwise_and(el.ge(away, 0.07), el.le(v, inside))
        corner = el.bitwise_and(el.lt(away, 0.013), el.gt(v, away))
        rejected = el.bitwise_or(el.lt(k, 0.0), corner)
        below = el.bitwise_and(el.bitwise_not(rejected), el.le(s, t))
        accept = el.bitwise_or(squeezed, below)
        return el.add(i, 1), el.select(accept, k, found), el.bitwise_or(accepted, accept), key

    start = (zeros((), dtype), full(shape, -1, mean.dtype), zeros(shape, bool), key)
    return uf.astype(while_loop(unfinished, step, start)[1], dtype)


SPLIT: Final = 7.0
"""Means below are sampled from the sums of their first probabilities, others from a normal
approximation."""

TERMS: Final = 20


def _of_normal(z: Array, mean: Array) -> Array:
    """Return the quantiles of normal quantiles."""
    return el.select(el.lt(mean, SPLIT), _of_sums(_ndtr(z), mean), _of_approximation(z, mean))


def _ndtr(z: Array) -> Array:
    """Return the cumulative distribution function of the normal distribution."""
    w = el.mul(z, math.sqrt(0.5))
    size = el.abs(w)
    tail = el.erfc(size)
    far = el.select(el.gt(w, 0.0), el.sub(2.0, tail), tail)
    return el.mul(el.select(el.lt(size, math.sqrt(0.5)), el.add(el.erf(w), 1.0), far), 0.5)


def _of_sums(u: Array, mean: Array) -> Array:
    """Return how many cumulative probabilities are below ``u``, of the first ones."""
    probability = total = el.exp(el.neg(mean))
    count = el.convert_element_type(el.lt(total, u), u.dtype)
    for k in range(1, TERMS - 1):
        probability = el.mul(probability, el.div(mean, float(k)))
        total = el.add(total, probability)
        count = el.add(count, el.convert_element_type(el.lt(total, u), u.dtype))
    return count


def _of_approximation(z: Array, mean: Array) -> Array:
    """Return the least integers whose normal quantile is at least ``z``.

    Source: Peizer, Pratt, "A normal approximation for binomial, F, beta, and other common, related
    tail probabilities" (1968). The root of its expansion is off by less than 1 + 0.6.
    """
    root = el.sqrt(mean)
    squared = el.square(z)
    bend = el.div(el.mul(z, el.sub(1.0, squared)), el.mul(root, 72.0))
    guess = el.sub(el.add(mean, el.mul(root, z)), 2 / 3)
    guess = el.add(el.add(guess, el.div(squared, 6.0)), bend)
    c = el.ceil(el.add(guess, 0.6))
    lower = [_reaches(x, z, mean) for x in (c, el.sub(c, 1.0))]
    return el.max(el.sub(el.sub(el.add(c, 1.0), lower[0]), lower[1]), 0.0)


def _reaches(c: Array, z: Array, mean: Array) -> Array:
    """Return 1 where the normal quantile of the integer ``c`` is at least ``z``, else 0."""
    x = el.max(c, 0.0)
    correction = el.add(el.sub(x, mean), 2 / 3)
    correction = el.add(correction, el.div(0.02, el.add(x, 1.0)))
    factor = el.sqrt(el.div(el.add(_skewness(el.div(el.add(x, 0.5), mean)), 1.0), mean))
    quantile = el.select(el.lt(c, 0.0), -math.inf, el.mul(correction, factor))
    return el.convert_element_type(el.ge(quantile, z), c.dtype)


def _skewness(y: Array) -> Array:
    """Return ``(1 - y² + 2y·log y)/(1 - y)²``, by its series near 1."""
    d = el.sub(y, 1.0)
    near = el.lt(el.abs(d), 0.25)
    series = el.mul(d, 0.0)
    for k in reversed(range(1, 10)):
        series = el.mul(d, el.add(series, 2.0 * (-1) ** k / ((k + 1) * (k + 2))))
    far = el.select(near, 2.0, y)
    above = el.add(el.sub(1.0, el.square(far)), el.mul(el.mul(far, 2.0), el.log(far)))
    return el.select(near, series, el.div(above, el.square(el.select(near, 1.0, d))))
