"""Random samples of the binomial and of the multinomial distribution."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import full, zeros
from effax.arrays.shapes import broadcast_to, moveaxis
from effax.ir.dtypes import DType
from effax.ir.errors import IllTyped
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.control import scan
from effax.lax.reduce import cumsum
from effax.lax.whiles import while_loop
from effax.numpy import arithmetic as ar
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.index import take
from effax.numpy.reduce import all as all_along
from effax.numpy.reduce import any as any_along
from effax.random.arguments import floating, sample_shape
from effax.random.generators import checked, split_keys
from effax.random.keys import several
from effax.random.uniform import uniform

__all__ = ["binomial", "multinomial"]

Carry = tuple[Array, Array, Array, Array]


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return samples of the binomial distribution: numbers of successes of ``n`` trials.

    Args:
        key: random key, or its words.
        n: number of trials.
        p: probability of success of one trial.
        shape: shape of the result, that of the parameters by default.
        dtype: floating dtype, float32 by default.

    Returns:
        Array of integral floats; nan where ``n`` or ``p`` is negative or nan.

    Raises:
        IllTyped: the dtype is not floating, or a parameter does not broadcast.

    >>> random.binomial(random.key(0), 5, 1.0, (2,))
    Array([5., 5.], dtype=float32)
    """
    kind = floating(dtype, "binomial")
    sizes = sample_shape(shape, "binomial", n, p)
    chance = as_value(p, "p of binomial")
    chance = pr.converted(chance, *pr.inexact(chance.dtype, False))
    count = broadcast_to(uf.astype(n, chance.dtype), sizes)
    chance = broadcast_to(chance, sizes)
    return _samples(checked(key, "binomial"), count, chance, sizes, kind)


def _samples(key: Array, count: Array, p: Array, shape: Shape, dtype: DType) -> Array:
    """Return samples by inversion where few successes or failures are expected, or by rejection."""
    below_half = el.lt(p, 0.5)
    q = el.select(below_half, p, el.sub(1.0, p))
    no_count = el.bitwise_or(el.ne(count, count), el.lt(count, 0.0))
    infinite = el.eq(el.abs(count), math.inf)
    q_is_nan = el.ne(q, q)
    no_chance = el.bitwise_or(q_is_nan, el.lt(q, 0.0))
    q = el.select(no_chance, 0.01, q)
    few = el.bitwise_or(no_count, el.le(el.mul(count, q), 10.0))
    whole = el.floor(count)
    most = float(finfo(dtype).max)
    by_inversion = _by_inversion(key, el.select(few, whole, 0.0), q, shape, most)
    # Where inversion is used, the other samples are those of parameters that are accepted soon.
    by_rejection = _by_rejection(
        key, el.select(few, 1e4, whole), el.select(few, 0.5, q), shape, most
    )
    samples = el.convert_element_type(el.select(few, by_inversion, by_rejection), dtype)
    invalid = el.bitwise_or(no_chance, no_count)
    samples = el.select(invalid, math.nan, samples)
    samples = el.select(el.bitwise_and(infinite, el.bitwise_not(invalid)), math.inf, samples)
    direct = el.bitwise_or(el.bitwise_or(below_half, no_count), el.bitwise_or(q_is_nan, infinite))
    return el.select(direct, samples, el.sub(el.convert_element_type(whole, dtype), samples))


def _by_inversion(key: Array, count: Array, p: Array, shape: Shape, most: float) -> Array:
    """Return how many geometric samples have a sum of at most ``count``.

    Source: Devroye, "Non-uniform random variate generation" (1986), X.4.
    """
    failure = el.log1p(el.neg(p))

    def unfinished(state: Carry) -> Array:
        i, _, total, _ = state
        return el.bitwise_and(any_along(el.le(total, count)), _is_less(i, most))

    def step(state: Carry) -> Carry:
        i, found, total, key = state
        sub, key = several(key, 2)
        found = el.select(el.le(total, count), el.add(found, 1.0), found)
        u = uniform(sub, shape, p.dtype)
        total = el.add(total, el.ceil(el.div(el.log(u), failure)))
        return el.add(i, 1), found, total, key

    start = (zeros((), np.int32), zeros(shape, p.dtype), zeros(shape, p.dtype), key)
    return el.sub(while_loop(unfinished, step, start)[1], 1.0)


def _is_less(i: Array, most: float) -> Array:
    return el.lt(el.convert_element_type(i, np.float32), min(most, float(np.finfo(np.float32).max)))


def _by_rejection(key: Array, count: Array, p: Array, shape: Shape, most: float) -> Array:
    """Return samples of means of more than 10 by transformed rejection.

    Source: Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS.
    """
    failure = el.sub(1.0, p)
    deviation = el.sqrt(el.mul(el.mul(count, p), failure))
    b = el.add(el.mul(deviation, 2.53), 1.15)
    a = el.add(el.add(el.mul(b, 0.0248), -0.0873), el.mul(p, 0.01))
    c = el.add(el.mul(count, p), 0.5)
    inside = el.sub(0.92, el.div(4.2, b))
    odds = el.div(p, failure)
    alpha = el.mul(el.add(el.div(5.1, b), 2.83), deviation)
    mode = el.floor(el.mul(el.add(count, 1.0), p))

    def unfinished(state: Carry) -> Array:
        i, _, accepted, _ = state
        return el.bitwise_and(el.bitwise_not(all_along(accepted)), _is_less(i, most))

    def step(state: Carry) -> Carry:
        i, found, accepted, key = state
        key, first, second = several(key, 3)
        u, v = (uniform(k, shape, p.dtype) for k in (first, second))
        u = el.sub(u, 0.5)
        away = el.sub(0.5, el.abs(u))
        squeezed = el.bitwise_and(el.ge(away, 0.07), el.le(v, inside))
        slope = el.add(el.div(el.mul(a, 2.0), away), b)
        k = el.floor(el.add(el.mul(slope, u), c))
        outside = el.bitwise_or(el.lt(k, 0.0), el.gt(k, count))
        height = el.add(el.div(a, el.mul(away, away)), b)
        v = el.log(el.div(el.mul(v, alpha), height))
        below = el.le(v, _log_ratio(k, mode, count, odds))
        accept = el.bitwise_or(squeezed, el.bitwise_and(el.bitwise_not(outside), below))
        return el.add(i, 1), el.select(accept, k, found), el.bitwise_or(accepted, accept), key

    start = (zeros((), np.int32), full(shape, -1, p.dtype), zeros(shape, bool), key)
    return while_loop(unfinished, step, start)[1]


def _log_ratio(k: Array, mode: Array, count: Array, odds: Array) -> Array:
    """Return the logarithm of the probability of ``k`` by that of the mode."""
    rest_of_mode, rest = (el.add(el.sub(count, x), 1.0) for x in (mode, k))
    at_mode = el.log(el.div(el.add(mode, 1.0), el.mul(odds, rest_of_mode)))
    total = el.mul(el.add(mode, 0.5), at_mode)
    total = el.add(total, el.mul(el.add(count, 1.0), el.log(el.div(rest_of_mode, rest))))
    at_k = el.log(el.div(el.mul(odds, rest), el.add(k, 1.0)))
    total = el.add(total, el.mul(el.add(k, 0.5), at_k))
    total = el.add(el.add(total, _tail(mode)), _tail(el.sub(count, mode)))
    return el.sub(el.sub(total, _tail(k)), _tail(el.sub(count, k)))


_TAILS: Final = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)
"""``log k! - (log √(2π) + (k + 1/2)·log(k + 1) - (k + 1))`` for k = 0..9."""


def _tail(k: Array) -> Array:
    """Return what Stirling's formula leaves out of ``log k!``, by a series for greater k."""
    small = el.le(k, 9.0)
    k = el.clamp(0.0, k, 9.0)
    next_ = el.add(k, 1.0)
    squared = el.mul(next_, next_)
    inner = el.sub(1.0 / 360, el.div(1.0 / 1260, squared))
    series = el.div(el.sub(1.0 / 12, el.div(inner, squared)), next_)
    table = as_value(np.asarray(_TAILS, k.dtype))
    return el.select(small, take(table, uf.astype(el.floor(k), np.int32), 0), series)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Return samples of the multinomial distribution: numbers of trials with each outcome.

    Args:
        key: random key, or its words.
        n: number of trials.
        p: probabilities of the outcomes, along the last axis.
        shape: shape of the result without its last axis, that of ``p`` by default.
        dtype: dtype of the result, float32 by default.
        unroll: as in ``lax.scan``, which runs over the outcomes.

    Returns:
        Array of shape ``shape`` followed by the number of outcomes.

    Raises:
        IllTyped: ``p`` has no axis, or a parameter does not broadcast.

    >>> random.multinomial(random.key(0), 5, jnp.array([1.0, 0.0]))
    Array([5., 0.], dtype=float32)
    """
    kind = pr.inexact(*pr.common_dtype((n, p), "multinomial"))[0]
    chances = el.convert_element_type(as_value(p, "p of multinomial"), kind)
    if not chances.ndim:
        raise IllTyped("multinomial requires p.ndim >= 1", "an axis of outcomes", str(chances.type))
    lead = (
        chances.shape[:-1]
        if shape is None
        else sample_shape(shape, "multinomial", n, chances[..., 0])
    )
    total = broadcast_to(el.convert_element_type(n, kind), lead)
    chances = moveaxis(broadcast_to(chances, (*lead, chances.shape[-1])), -1, 0)
    rest = cumsum(chances, 0, reverse=True)
    ratios = el.div(chances, el.select(el.eq(rest, 0.0), 1.0, rest))
    keys = split_keys(checked(key, "multinomial"), (chances.shape[0],))

    def step(left: Array, outcome: tuple[Array, Array]) -> tuple[Array, Array]:
        ratio, own = outcome
        count = binomial(own, left, ar.clip(ratio, 0, 1), dtype=kind)
        return el.sub(left, count), count

    counts = scan(step, total, (ratios, keys), unroll=unroll)[1]
    found = moveaxis(counts, 0, -1)
    return found if dtype is None else uf.astype(found, dtype)
