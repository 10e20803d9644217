"""Student"s t distribution."""

from __future__ import annotations

import math

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.scipy import special
from effax.scipy.stats.shared import described, positive, standardized

__all__ = ["logpdf", "pdf"]


@described(df="degrees of freedom, positive.")
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the logarithm of the density.

    >>> stats.t.logpdf(jnp.array([0.5]), 4.0)
    Array([-1.1323907], dtype=float32)
    """
    z, unit, df = standardized("t.logpdf", x, loc, scale, df)
    df = positive(df)
    # Γ((n + 1)/2)/(√(πn)·Γ(n/2)) = 1/(√n·B(1/2, n/2))
    safe = jnp.where(jnp.isinf(df), 1, df)
    scale = 0.5 * jnp.log(safe) + special.betaln(0.5, safe / 2)
    value = -scale - 0.5 * (safe + 1) * jnp.log1p(z * z / safe)
    limit = -0.5 * z * z - 0.5 * math.log(2 * math.pi)
    return jnp.where(jnp.isinf(df), limit, value) - jnp.log(unit)


@described(df="degrees of freedom, positive.")
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Return the density.

    >>> stats.t.pdf(jnp.array([0.5]), 4.0)
    Array([0.3222619], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))
