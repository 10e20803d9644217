"""The gamma distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats.shared import described, in_support, log_of, positive, standardized

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@described(a="shape, positive.")
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.gamma.logpdf(jnp.array([0.5]), 2.0)
    Array([-1.1931472], dtype=float32)
    """
    z, unit, a = standardized("gamma.logpdf", x, loc, scale, a)
    a = positive(a)
    inside = z >= 0
    safe = jnp.where(inside, z, 1)
    value = special.xlogy(a - 1, safe) - safe - special.gammaln(a) - jnp.log(unit)
    return in_support(inside, value, z)


@described(a="shape, positive.")
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.gamma.pdf(jnp.array([0.5]), 2.0)
    Array([0.30326533], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@described(a="shape, positive.")
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.gamma.cdf(jnp.array([0.5]), 2.0)
    Array([0.09020401], dtype=float32)
    """
    z, _, a = standardized("gamma.cdf", x, loc, scale, a)
    a = positive(a)
    return special.gammainc(a, jnp.maximum(z, 0))


@described(a="shape, positive.")
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``cdf``.

    >>> stats.gamma.logcdf(jnp.array([0.5]), 2.0)
    Array([-2.4056814], dtype=float32)
    """
    return log_of(cdf(x, a, loc, scale), sf(x, a, loc, scale))


@described(a="shape, positive.")
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the probability of values above ``x``.

    >>> stats.gamma.sf(jnp.array([0.5]), 2.0)
    Array([0.909796], dtype=float32)
    """
    z, _, a = standardized("gamma.sf", x, loc, scale, a)
    a = positive(a)
    return special.gammaincc(a, jnp.maximum(z, 0))


@described(a="shape, positive.")
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of ``sf``.

    >>> stats.gamma.logsf(jnp.array([0.5]), 2.0)
    Array([-0.09453489], dtype=float32)
    """
    return log_of(sf(x, a, loc, scale), cdf(x, a, loc, scale))
