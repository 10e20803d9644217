"""The normal distribution."""

from __future__ import annotations

import math
from typing import Final

from effax.arrays.array import Array, ArrayLike
from effax.numpy import ufuncs as uf
from effax.scipy.formulas import floats
from effax.scipy.special import log_ndtr, ndtr, ndtri
from effax.scipy.stats.shared import described, standardized

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

HALF_LOG_2_PI: Final = 0.5 * math.log(2 * math.pi)


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density, ``-z**2 / 2 - log(scale * sqrt(2 * pi))``.

    >>> stats.norm.logpdf(jnp.array([0.0, 1.0]))
    Array([-0.9189385, -1.4189385], dtype=float32)
    """
    z, unit = standardized("norm.logpdf", x, loc, scale)
    exponent = uf.multiply(-0.5, uf.square(z))
    return uf.subtract(exponent, uf.add(uf.log(unit), HALF_LOG_2_PI))


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.norm.pdf(jnp.array([0.0]))
    Array([0.3989423], dtype=float32)
    """
    return uf.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.norm.cdf(jnp.array([0.0, jnp.inf]))
    Array([0.5, 1. ], dtype=float32)
    """
    return ndtr(standardized("norm.cdf", x, loc, scale)[0])


@described()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.norm.logcdf(jnp.array([0.0]))
    Array([-0.6931472], dtype=float32)
    """
    return log_ndtr(standardized("norm.logcdf", x, loc, scale)[0])


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.norm.sf(jnp.array([0.0, jnp.inf]))
    Array([0.5, 0. ], dtype=float32)
    """
    return ndtr(uf.negative(standardized("norm.sf", x, loc, scale)[0]))


@described()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.norm.logsf(jnp.array([0.0]))
    Array([-0.6931472], dtype=float32)
    """
    return log_ndtr(uf.negative(standardized("norm.logsf", x, loc, scale)[0]))


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.norm.ppf(jnp.array([0.5, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    p, middle, unit = floats("norm.ppf", q, loc, scale)
    unit = uf.where(uf.greater(unit, 0), unit, math.nan)
    return uf.add(uf.multiply(ndtri(p), unit), middle)


@described()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the inverse of ``sf``.

    >>> stats.norm.isf(jnp.array([0.5, 1.0]))
    Array([  0., -inf], dtype=float32)
    """
    p, middle, unit = floats("norm.isf", q, loc, scale)
    unit = uf.where(uf.greater(unit, 0), unit, math.nan)
    return uf.subtract(middle, uf.multiply(ndtri(p), unit))
