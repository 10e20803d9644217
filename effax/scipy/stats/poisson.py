"""The Poisson distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support, whole

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@described(mu="mean, at least 0.")
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.poisson.logpmf(jnp.array([1]), 2.0)
    Array([-1.3068528], dtype=float32, weak_type=True)
    """
    k, mu, origin = floats("poisson.logpmf", k, mu, loc)
    k = k - origin
    inside = whole(k) & (k >= 0)
    at = jnp.where(inside, k, 0)
    value = special.xlogy(at, mu) - special.gammaln(at + 1) - mu
    return jnp.where(mu >= 0, in_support(inside, value, k), jnp.nan)


@described(mu="mean, at least 0.")
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.poisson.pmf(jnp.array([1]), 2.0)
    Array([0.27067056], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, mu, loc))


@described(mu="mean, at least 0.")
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability of values up to ``k``.

    >>> stats.poisson.cdf(jnp.array([1]), 2.0)
    Array([0.4060058], dtype=float32, weak_type=True)
    """
    k, mu, origin = floats("poisson.cdf", k, mu, loc)
    k = k - origin
    value = special.gammaincc(jnp.floor(jnp.maximum(k, 0)) + 1, mu)
    value = jnp.where(k < 0, 0, value)
    return jnp.where((mu >= 0) & ~jnp.isnan(k), value, jnp.nan)


@described(mu="mean, at least 0.")
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the entropy.

    >>> stats.poisson.entropy(jnp.array([2.0]))
    Array([1.7048826], dtype=float32)
    """
    mu = floats("poisson.entropy", mu, loc)[0]
    small = jnp.where(mu < 200, mu, 1)
    k = jnp.arange(400, dtype=mu.dtype)
    terms = logpmf(k, small[..., None])
    total = -jnp.sum(jnp.exp(terms) * jnp.where(jnp.isinf(terms), 0, terms), -1)
    # The expansion in 1/mu
    large = jnp.where(mu < 200, 200, mu)
    rest = 1 / 12 + (1 / 24 + (19 / 360 + 9 / 80 / large) / large) / large
    series = 0.5 * jnp.log(2 * jnp.pi * jnp.e * large) - rest / large
    value = jnp.where(mu < 200, total, series)
    return jnp.where(mu >= 0, value, jnp.nan)
