"""The negative binomial distribution of the number of failures."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support, whole

__all__ = ["logpmf", "pmf"]


@described(n="number of successes, positive.", p="probability of success.")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.nbinom.logpmf(jnp.array([1]), 1, 0.5)
    Array([-1.3862944], dtype=float32, weak_type=True)
    """
    k, n, p, origin = floats("nbinom.logpmf", k, n, p, loc)
    k = k - origin
    valid = (p > 0) & (p <= 1) & (n > 0)
    inside = whole(k) & (k >= 0)
    at = jnp.where(inside, k, 0)
    # C(k + n - 1, k) = 1/((k + n)·B(k + 1, n))
    value = -jnp.log(at + n) - special.betaln(at + 1, n)
    value = value + special.xlogy(n, p) + special.xlog1py(at, -p)
    return jnp.where(valid, in_support(inside, value, k), jnp.nan)


@described(n="number of successes, positive.", p="probability of success.")
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.nbinom.pmf(jnp.array([1]), 1, 0.5)
    Array([0.25], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))
