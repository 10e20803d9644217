"""The von Mises distribution on angles."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.formulas import floats
from effax.scipy.stats.shared import described

__all__ = ["logpdf", "pdf"]


@described(kappa="concentration, at least 0.")
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Return the logarithm of the density.

    >>> stats.vonmises.logpdf(jnp.array([0.5]), 2.0)
    Array([-0.90670556], dtype=float32)
    """
    x, kappa = floats("vonmises.logpdf", x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * jnp.pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, value, jnp.nan)


@described(kappa="concentration, at least 0.")
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Return the density.

    >>> stats.vonmises.pdf(jnp.array([0.5]), 2.0)
    Array([0.4038525], dtype=float32)
    """
    return jnp.exp(logpdf(x, kappa))
