"""The left-skewed Gumbel distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import described, log_of, quantiles, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.gumbel_l.logpdf(jnp.array([0.5]))
    Array([-1.1487212], dtype=float32)
    """
    z, unit = standardized("gumbel_l.logpdf", x, loc, scale)
    value = jnp.where(jnp.isinf(z), -jnp.inf, z - jnp.exp(z))
    return value - jnp.log(unit)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.gumbel_l.pdf(jnp.array([0.5]))
    Array([0.31704196], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.gumbel_l.cdf(jnp.array([0.5]))
    Array([0.8077044], dtype=float32)
    """
    z, _ = standardized("gumbel_l.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(z))


@described()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.gumbel_l.logcdf(jnp.array([0.5]))
    Array([-0.2135592], dtype=float32)
    """
    return log_of(cdf(x, loc, scale), sf(x, loc, scale))


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.gumbel_l.sf(jnp.array([0.5]))
    Array([0.19229566], dtype=float32)
    """
    z, _ = standardized("gumbel_l.sf", x, loc, scale)
    return jnp.exp(-jnp.exp(z))


@described()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.gumbel_l.logsf(jnp.array([0.5]))
    Array([-1.6487212], dtype=float32)
    """
    z, _ = standardized("gumbel_l.logsf", x, loc, scale)
    return -jnp.exp(z)


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.gumbel_l.ppf(jnp.array([0.25]))
    Array([-1.2458994], dtype=float32)
    """
    p, middle, unit = quantiles("gumbel_l.ppf", q, loc, scale)
    return middle + unit * (jnp.log(-jnp.log1p(-p)))
