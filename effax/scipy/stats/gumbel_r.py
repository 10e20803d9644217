"""The right-skewed Gumbel distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, log_of, quantiles, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.gumbel_r.logpdf(jnp.array([0.5]))
    Array([-1.1065307], dtype=float32)
    """
    z, unit = standardized("gumbel_r.logpdf", x, loc, scale)
    value = jnp.where(jnp.isinf(z), -jnp.inf, -z - jnp.exp(-z))
    return value - jnp.log(unit)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.gumbel_r.pdf(jnp.array([0.5]))
    Array([0.3307043], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.gumbel_r.cdf(jnp.array([0.5]))
    Array([0.5452392], dtype=float32)
    """
    z, _ = standardized("gumbel_r.cdf", x, loc, scale)
    return jnp.exp(-jnp.exp(-z))


@described()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.gumbel_r.logcdf(jnp.array([0.5]))
    Array([-0.60653067], dtype=float32)
    """
    z, _ = standardized("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(-z)


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.gumbel_r.sf(jnp.array([0.5]))
    Array([0.4547608], dtype=float32)
    """
    z, _ = standardized("gumbel_r.sf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(-z))


@described()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.gumbel_r.logsf(jnp.array([0.5]))
    Array([-0.7879837], dtype=float32)
    """
    return log_of(sf(x, loc, scale), cdf(x, loc, scale))


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.gumbel_r.ppf(jnp.array([0.25]))
    Array([-0.32663426], dtype=float32)
    """
    p, middle, unit = quantiles("gumbel_r.ppf", q, loc, scale)
    return middle + unit * (-jnp.log(-jnp.log(p)))
