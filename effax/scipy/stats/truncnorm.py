"""The normal distribution, restricted to an interval."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats import norm
from effax.scipy.stats.shared import described, in_support, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def log_mass(a: Array, b: Array) -> Array:
    """Return the logarithm of the probability between two bounds, by the smaller tails."""
    # Both bounds are mirrored where they are positive, so that the tails are not near 1.
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    one_side = high <= 0
    ends = [special.log_ndtr(jnp.where(one_side, x, y)) for x, y in ((low, -2), (high, -1))]
    difference = ends[1] + jnp.log1p(-jnp.exp(ends[0] - ends[1]))
    tails = special.ndtr(low) + special.ndtr(-high)
    return jnp.where(one_side, difference, jnp.log1p(-jnp.where(one_side, 0, tails)))


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of the density.

    >>> stats.truncnorm.logpdf(jnp.array([0.5]), -1.0, 1.0)
    Array([-0.66222334], dtype=float32)
    """
    z, unit, a, b = standardized("truncnorm.logpdf", x, loc, scale, a, b)
    inside = (z >= a) & (z <= b)
    safe = jnp.where(inside, z, jnp.clip(0, a, b))
    value = norm.logpdf(safe) - log_mass(a, b) - jnp.log(unit)
    return in_support(inside, value, z)


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the density.

    >>> stats.truncnorm.pdf(jnp.array([0.5]), -1.0, 1.0)
    Array([0.5157035], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.truncnorm.cdf(jnp.array([0.5]), -1.0, 1.0)
    Array([0.78045326], dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.truncnorm.logcdf(jnp.array([0.5]), -1.0, 1.0)
    Array([-0.24788046], dtype=float32)
    """
    z, _, a, b = standardized("truncnorm.logcdf", x, loc, scale, a, b)
    point = jnp.clip(z, a, b)
    value = log_mass(a, jnp.where(z > a, point, b)) - log_mass(a, b)
    value = jnp.where(z <= a, -jnp.inf, value)
    return jnp.where(jnp.isnan(z) | ~(a < b), jnp.nan, value)


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.truncnorm.sf(jnp.array([0.5]), -1.0, 1.0)
    Array([0.21954672], dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


@described(a="lower bound, in units of ``scale`` from ``loc``.", b="upper bound, likewise.")
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.truncnorm.logsf(jnp.array([0.5]), -1.0, 1.0)
    Array([-1.5161902], dtype=float32)
    """
    z, _, a, b = standardized("truncnorm.logsf", x, loc, scale, a, b)
    point = jnp.clip(z, a, b)
    value = log_mass(jnp.where(z < b, point, a), b) - log_mass(a, b)
    value = jnp.where(z >= b, -jnp.inf, value)
    return jnp.where(jnp.isnan(z) | ~(a < b), jnp.nan, value)
