"""The Pareto distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy.stats.shared import (
    described,
    in_support,
    log_of,
    positive,
    quantiles,
    standardized,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@described(b="shape, positive.")
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.pareto.logpdf(jnp.array([2.0]), 2.0)
    Array([-1.3862944], dtype=float32)
    """
    z, unit, b = standardized("pareto.logpdf", x, loc, scale, b)
    b = positive(b)
    inside = z >= 1
    value = jnp.log(b) - (b + 1) * jnp.log(jnp.where(inside, z, 1)) - jnp.log(unit)
    return in_support(inside, value, z)


@described(b="shape, positive.")
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.pareto.pdf(jnp.array([2.0]), 2.0)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@described(b="shape, positive.")
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.pareto.cdf(jnp.array([2.0]), 2.0)
    Array([0.75], dtype=float32)
    """
    z, _, b = standardized("pareto.cdf", x, loc, scale, b)
    b = positive(b)
    return -jnp.expm1(-b * jnp.log(jnp.maximum(z, 1)))


@described(b="shape, positive.")
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.pareto.logcdf(jnp.array([2.0]), 2.0)
    Array([-0.28768206], dtype=float32)
    """
    return log_of(cdf(x, b, loc, scale), sf(x, b, loc, scale))


@described(b="shape, positive.")
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.pareto.sf(jnp.array([2.0]), 2.0)
    Array([0.25], dtype=float32)
    """
    z, _, b = standardized("pareto.sf", x, loc, scale, b)
    b = positive(b)
    return jnp.exp(-b * jnp.log(jnp.maximum(z, 1)))


@described(b="shape, positive.")
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.pareto.logsf(jnp.array([2.0]), 2.0)
    Array([-1.3862944], dtype=float32)
    """
    z, _, b = standardized("pareto.logsf", x, loc, scale, b)
    b = positive(b)
    return -b * jnp.log(jnp.maximum(z, 1))


@described(b="shape, positive.")
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the quantiles, the inverse of ``cdf``.

    >>> stats.pareto.ppf(jnp.array([0.25]), 2.0)
    Array([1.1547005], dtype=float32)
    """
    p, middle, unit, b = quantiles("pareto.ppf", q, loc, scale, b)
    b = positive(b)
    return middle + unit * (jnp.exp(-jnp.log1p(-p) / b))
