"""The Laplace distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, standardized

__all__ = ["cdf", "logpdf", "pdf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.laplace.logpdf(jnp.array([0.5]))
    Array([-1.1931472], dtype=float32)
    """
    z, unit = standardized("laplace.logpdf", x, loc, scale)
    return -jnp.abs(z) - jnp.log(2 * unit)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.laplace.pdf(jnp.array([0.5]))
    Array([0.30326533], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.laplace.cdf(jnp.array([0.5]))
    Array([0.69673467], dtype=float32)
    """
    z, _ = standardized("laplace.cdf", x, loc, scale)
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, half, 1 - half)
