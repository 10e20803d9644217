"""The logistic distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats.shared import described, quantiles, standardized

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@described()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.logistic.logpdf(jnp.array([0.5]))
    Array([-1.448154], dtype=float32)
    """
    z, unit = standardized("logistic.logpdf", x, loc, scale)
    size = jnp.abs(z)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(unit)


@described()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.logistic.pdf(jnp.array([0.5]))
    Array([0.23500371], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@described()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.logistic.cdf(jnp.array([0.5]))
    Array([0.62245935], dtype=float32)
    """
    z, _ = standardized("logistic.cdf", x, loc, scale)
    return special.expit(z)


@described()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.logistic.sf(jnp.array([0.5]))
    Array([0.37754068], dtype=float32)
    """
    z, _ = standardized("logistic.sf", x, loc, scale)
    return special.expit(-z)


@described()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.logistic.ppf(jnp.array([0.25]))
    Array([-1.0986123], dtype=float32)
    """
    p, middle, unit = quantiles("logistic.ppf", q, loc, scale)
    return middle + unit * (special.logit(p))


@described()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the inverse of ``sf``.

    >>> stats.logistic.isf(jnp.array([0.25]))
    Array([1.0986123], dtype=float32)
    """
    p, middle, unit = quantiles("logistic.isf", q, loc, scale)
    return middle + unit * (-special.logit(p))
