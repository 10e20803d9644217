"""The beta distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats.shared import described, in_support, log_of, positive, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@described(a="first shape, positive.", b="second shape, positive.")
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of the density.

    >>> stats.beta.logpdf(jnp.array([0.5]), 2.0, 1.0)
    Array([0.], dtype=float32)
    """
    z, unit, a, b = standardized("beta.logpdf", x, loc, scale, a, b)
    a = positive(a)
    b = positive(b)
    inside = (z >= 0) & (z <= 1)
    safe = jnp.where(inside, z, 0.5)
    value = special.xlogy(a - 1, safe) + special.xlog1py(b - 1, -safe) - special.betaln(a, b)
    return in_support(inside, value - jnp.log(unit), z)


@described(a="first shape, positive.", b="second shape, positive.")
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the density.

    >>> stats.beta.pdf(jnp.array([0.5]), 2.0, 1.0)
    Array([1.], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@described(a="first shape, positive.", b="second shape, positive.")
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.beta.cdf(jnp.array([0.5]), 2.0, 1.0)
    Array([0.25], dtype=float32)
    """
    z, _, a, b = standardized("beta.cdf", x, loc, scale, a, b)
    a = positive(a)
    b = positive(b)
    return special.betainc(a, b, jnp.clip(z, 0, 1))


@described(a="first shape, positive.", b="second shape, positive.")
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.beta.logcdf(jnp.array([0.5]), 2.0, 1.0)
    Array([-1.3862944], dtype=float32)
    """
    return log_of(cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale))


@described(a="first shape, positive.", b="second shape, positive.")
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.beta.sf(jnp.array([0.5]), 2.0, 1.0)
    Array([0.75], dtype=float32)
    """
    z, _, a, b = standardized("beta.sf", x, loc, scale, a, b)
    a = positive(a)
    b = positive(b)
    return special.betainc(b, a, 1 - jnp.clip(z, 0, 1))


@described(a="first shape, positive.", b="second shape, positive.")
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.beta.logsf(jnp.array([0.5]), 2.0, 1.0)
    Array([-0.28768206], dtype=float32)
    """
    return log_of(sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale))
