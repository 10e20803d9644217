"""The chi-squared distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats.shared import described, in_support, log_of, positive, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@described(df="degrees of freedom, positive.")
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.chi2.logpdf(jnp.array([0.5]), 4.0)
    Array([-2.3294415], dtype=float32)
    """
    z, unit, df = standardized("chi2.logpdf", x, loc, scale, df)
    df = positive(df)
    inside = z >= 0
    safe = jnp.where(inside, z, 1)
    half = df / 2
    value = special.xlogy(half - 1, safe / 2) - safe / 2 - special.gammaln(half)
    return in_support(inside, value - jnp.log(2 * unit), z)


@described(df="degrees of freedom, positive.")
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.chi2.pdf(jnp.array([0.5]), 4.0)
    Array([0.09735009], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


@described(df="degrees of freedom, positive.")
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.chi2.cdf(jnp.array([0.5]), 4.0)
    Array([0.02649902], dtype=float32)
    """
    z, _, df = standardized("chi2.cdf", x, loc, scale, df)
    df = positive(df)
    return special.gammainc(df / 2, jnp.maximum(z, 0) / 2)


@described(df="degrees of freedom, positive.")
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.chi2.logcdf(jnp.array([0.5]), 4.0)
    Array([-3.6306474], dtype=float32)
    """
    return log_of(cdf(x, df, loc, scale), sf(x, df, loc, scale))


@described(df="degrees of freedom, positive.")
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.chi2.sf(jnp.array([0.5]), 4.0)
    Array([0.97350097], dtype=float32)
    """
    z, _, df = standardized("chi2.sf", x, loc, scale, df)
    df = positive(df)
    return special.gammaincc(df / 2, jnp.maximum(z, 0) / 2)


@described(df="degrees of freedom, positive.")
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.chi2.logsf(jnp.array([0.5]), 4.0)
    Array([-0.02685645], dtype=float32)
    """
    return log_of(sf(x, df, loc, scale), cdf(x, df, loc, scale))
