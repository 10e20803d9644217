"""The beta-binomial distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support, whole

__all__ = ["logpmf", "pmf"]


@described(n="number of trials.", a="first shape, positive.", b="second shape, positive.")
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.betabinom.logpmf(jnp.array([1]), 2, 1.0, 1.0)
    Array([-1.0986123], dtype=float32, weak_type=True)
    """
    k, n, a, b, origin = floats("betabinom.logpmf", k, n, a, b, loc)
    k = k - origin
    valid = (a > 0) & (b > 0) & (n >= 0)
    inside = whole(k) & (k >= 0) & (k <= n)
    at = jnp.where(inside, k, 0)
    value = -jnp.log1p(n) - special.betaln(n - at + 1, at + 1)
    value = value + special.betaln(at + a, n - at + b) - special.betaln(a, b)
    return jnp.where(valid, in_support(inside, value, k), jnp.nan)


@described(n="number of trials.", a="first shape, positive.", b="second shape, positive.")
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.betabinom.pmf(jnp.array([1]), 2, 1.0, 1.0)
    Array([0.33333334], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
