"""The geometric distribution of the number of trials."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support, whole

__all__ = ["logpmf", "pmf"]


@described(p="probability of success.")
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the logarithm of the probability.

    >>> stats.geom.logpmf(jnp.array([2]), 0.5)
    Array([-1.3862944], dtype=float32, weak_type=True)
    """
    k, p, origin = floats("geom.logpmf", k, p, loc)
    k = k - origin
    valid = (p > 0) & (p <= 1)
    inside = whole(k) & (k >= 1)
    at = jnp.where(inside, k, 1)
    value = special.xlog1py(at - 1, -p) + jnp.log(p)
    return jnp.where(valid, in_support(inside, value, k), jnp.nan)


@described(p="probability of success.")
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Return the probability.

    >>> stats.geom.pmf(jnp.array([2]), 0.5)
    Array([0.25], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, p, loc))
