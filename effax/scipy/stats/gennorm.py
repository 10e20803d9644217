"""The generalized normal distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described, positive

__all__ = ["cdf", "logpdf", "pdf"]


@described(beta="shape, positive.")
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Return the logarithm of the density.

    >>> stats.gennorm.logpdf(jnp.array([0.5]), 2.0)
    Array([-0.8223649], dtype=float32)
    """
    x, beta = floats("gennorm.logpdf", x, beta)
    beta = positive(beta)
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


@described(beta="shape, positive.")
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Return the density.

    >>> stats.gennorm.pdf(jnp.array([0.5]), 2.0)
    Array([0.43939131], dtype=float32)
    """
    return jnp.exp(logpdf(x, beta))


@described(beta="shape, positive.")
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Return the probability of values up to ``x``.

    >>> stats.gennorm.cdf(jnp.array([0.5]), 2.0)
    Array([0.76024985], dtype=float32)
    """
    x, beta = floats("gennorm.cdf", x, beta)
    beta = positive(beta)
    return 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))
