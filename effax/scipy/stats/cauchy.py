"""The Cauchy distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, log_of, quantiles, standardized

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def cotangent(p: Array) -> Array:
    """Return -cot(πp), accurate for p near 0 and 1."""
    low, high = p < 0.25, p > 0.75
    edge = jnp.where(low, p, jnp.where(high, 1 - p, 0.25))
    steep = jnp.where(low, -1, 1) / jnp.tan(jnp.pi * edge)
    middle = jnp.tan(jnp.pi * (jnp.where(low | high, 0.5, p) - 0.5))
    return jnp.where(low | high, steep, middle)


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.cauchy.logpdf(jnp.array([0.5]))
    Array([-1.3678735], dtype=float32)
    """
    z, unit = standardized("cauchy.logpdf", x, loc, scale)
    return -jnp.log(jnp.pi * unit) - jnp.log1p(z * z)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.cauchy.pdf(jnp.array([0.5]))
    Array([0.25464788], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.cauchy.cdf(jnp.array([0.5]))
    Array([0.64758354], dtype=float32)
    """
    z, _ = standardized("cauchy.cdf", x, loc, scale)
    return jnp.arctan2(1, -z) / jnp.pi


@described()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.cauchy.logcdf(jnp.array([0.5]))
    Array([-0.43450737], dtype=float32)
    """
    return log_of(cdf(x, loc, scale), sf(x, loc, scale))


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.cauchy.sf(jnp.array([0.5]))
    Array([0.3524164], dtype=float32)
    """
    z, _ = standardized("cauchy.sf", x, loc, scale)
    return jnp.arctan2(1, z) / jnp.pi


@described()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.cauchy.logsf(jnp.array([0.5]))
    Array([-1.0429418], dtype=float32)
    """
    return log_of(sf(x, loc, scale), cdf(x, loc, scale))


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.cauchy.ppf(jnp.array([0.25]))
    Array([-1.], dtype=float32)
    """
    p, middle, unit = quantiles("cauchy.ppf", q, loc, scale)
    return middle + unit * (cotangent(p))


@described()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the inverse of ``sf``.

    >>> stats.cauchy.isf(jnp.array([0.25]))
    Array([1.], dtype=float32)
    """
    p, middle, unit = quantiles("cauchy.isf", q, loc, scale)
    return middle + unit * (-cotangent(p))
