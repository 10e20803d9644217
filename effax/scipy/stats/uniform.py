"""The uniform distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, in_support, quantiles, standardized

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.uniform.logpdf(jnp.array([0.5]))
    Array([-0.], dtype=float32)
    """
    z, unit = standardized("uniform.logpdf", x, loc, scale)
    return in_support((z >= 0) & (z <= 1), -jnp.log(unit), z)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.uniform.pdf(jnp.array([0.5]))
    Array([1.], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.uniform.cdf(jnp.array([0.5]))
    Array([0.5], dtype=float32)
    """
    z, _ = standardized("uniform.cdf", x, loc, scale)
    return jnp.clip(z, 0, 1)


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.uniform.ppf(jnp.array([0.25]))
    Array([0.25], dtype=float32)
    """
    p, middle, unit = quantiles("uniform.ppf", q, loc, scale)
    return middle + unit * p
