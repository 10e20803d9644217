"""The multinomial distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, whole

__all__ = ["logpmf", "pmf"]


@described(
    x="counts, along the last axis.", n="number of trials.", p="probabilities, along the last axis."
)
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the logarithm of the probability; -inf where the counts are not ``n`` in all.

    >>> stats.multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(-0.6931472, dtype=float32)
    """
    counts, shares = floats("multinomial.logpmf", x, p)
    inside = jnp.all(whole(counts) & (counts >= 0), -1) & (jnp.sum(counts, -1) == n)
    safe = jnp.where(inside[..., None], counts, 0)
    terms = special.xlogy(safe, shares) - special.gammaln(safe + 1)
    value = special.gammaln(jnp.asarray(n, counts.dtype) + 1) + jnp.sum(terms, -1)
    return jnp.where(inside, value, -jnp.inf)


@described(
    x="counts, along the last axis.", n="number of trials.", p="probabilities, along the last axis."
)
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability; 0 where the counts are not ``n`` in all.

    >>> stats.multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(0.5, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))
