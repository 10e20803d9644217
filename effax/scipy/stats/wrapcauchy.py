"""The wrapped Cauchy distribution on angles from 0 to 2·pi."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, in_support

__all__ = ["logpdf", "pdf"]


@described(c="concentration, between 0 and 1.")
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Return the logarithm of the density.

    >>> stats.wrapcauchy.logpdf(jnp.array([0.5]), 0.5)
    Array([-1.1378193], dtype=float32)
    """
    x, c = floats("wrapcauchy.logpdf", x, c)
    inside = (x >= 0) & (x <= 2 * jnp.pi)
    valid = (c > 0) & (c < 1)
    safe = jnp.where(valid, c, 0.5)
    spread = 1 + safe * safe - 2 * safe * jnp.cos(jnp.where(inside, x, 0))
    value = jnp.log1p(-safe * safe) - jnp.log(2 * jnp.pi * spread)
    return jnp.where(valid, in_support(inside, value, x), jnp.nan)


@described(c="concentration, between 0 and 1.")
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Return the density.

    >>> stats.wrapcauchy.pdf(jnp.array([0.5]), 0.5)
    Array([0.3205172], dtype=float32)
    """
    return jnp.exp(logpdf(x, c))
