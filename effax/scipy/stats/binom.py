"""The binomial distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support, whole

__all__ = ["logpmf", "pmf"]


@described(n="number of trials.", p="probability of success.")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.binom.logpmf(jnp.array([1]), 2, 0.5)
    Array([-0.6931472], dtype=float32, weak_type=True)
    """
    k, n, p, origin = floats("binom.logpmf", k, n, p, loc)
    k = k - origin
    valid = (p >= 0) & (p <= 1) & (n >= 0)
    inside = whole(k) & (k >= 0) & (k <= n)
    at = jnp.where(inside, k, 0)
    value = -jnp.log1p(n) - special.betaln(n - at + 1, at + 1)
    value = value + special.xlogy(at, p) + special.xlog1py(n - at, -p)
    return jnp.where(valid, in_support(inside, value, k), jnp.nan)


@described(n="number of trials.", p="probability of success.")
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.binom.pmf(jnp.array([1]), 2, 0.5)
    Array([0.5], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))
