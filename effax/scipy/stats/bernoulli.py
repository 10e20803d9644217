"""The Bernoulli distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@described(p="probability of 1.")
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.bernoulli.logpmf(jnp.array([1]), 0.25)
    Array([-1.3862944], dtype=float32, weak_type=True)
    """
    k, p, origin = floats("bernoulli.logpmf", k, p, loc)
    k = k - origin
    valid = (p >= 0) & (p <= 1)
    value = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    inside = (k == 0) | (k == 1)
    return jnp.where(valid, in_support(inside, value, k), jnp.nan)


@described(p="probability of 1.")
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.bernoulli.pmf(jnp.array([1]), 0.25)
    Array([0.25], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, p, loc))


@described(p="probability of 1.")
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability of values up to ``k``.

    >>> stats.bernoulli.cdf(jnp.array([1]), 0.25)
    Array([1.], dtype=float32, weak_type=True)
    """
    k, p = floats("bernoulli.cdf", k, p)
    valid = (p >= 0) & (p <= 1)
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(valid & ~jnp.isnan(k), value, jnp.nan)


@described(p="probability of 1.")
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.bernoulli.ppf(jnp.array([0.25]), 0.25)
    Array([0.], dtype=float32, weak_type=True)
    """
    q, p = floats("bernoulli.ppf", q, p)
    valid = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    value = jnp.where(q == 0, -1.0, jnp.where(q <= 1 - p, 0.0, 1.0))
    return jnp.where(valid, value, jnp.nan)
