"""The exponential distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, in_support, log_of, quantiles, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.expon.logpdf(jnp.array([0.5]))
    Array([-0.5], dtype=float32)
    """
    z, unit = standardized("expon.logpdf", x, loc, scale)
    inside = z >= 0
    value = -jnp.where(inside, z, 0) - jnp.log(unit)
    return in_support(inside, value, z)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.expon.pdf(jnp.array([0.5]))
    Array([0.60653067], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.expon.cdf(jnp.array([0.5]))
    Array([0.39346933], dtype=float32)
    """
    z, _ = standardized("expon.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.maximum(z, 0))


@described()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.expon.logcdf(jnp.array([0.5]))
    Array([-0.93275213], dtype=float32)
    """
    return log_of(cdf(x, loc, scale), sf(x, loc, scale))


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.expon.sf(jnp.array([0.5]))
    Array([0.60653067], dtype=float32)
    """
    z, _ = standardized("expon.sf", x, loc, scale)
    return jnp.exp(-jnp.maximum(z, 0))


@described()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.expon.logsf(jnp.array([0.5]))
    Array([-0.5], dtype=float32)
    """
    z, _ = standardized("expon.logsf", x, loc, scale)
    return -jnp.maximum(z, 0)


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.expon.ppf(jnp.array([0.25]))
    Array([0.28768206], dtype=float32)
    """
    p, middle, unit = quantiles("expon.ppf", q, loc, scale)
    return middle + unit * (-jnp.log1p(-p))
