"""The multivariate normal distribution."""

from __future__ import annotations

import math

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy.linalg import solve_triangular
from effax.scipy.stats import norm
from effax.scipy.stats.shared import described

__all__ = ["logpdf", "pdf"]


@described(
    x="points of shape (..., n).",
    mean="mean, of shape (n,), or a scalar.",
    cov="positive definite covariance, of shape (n, n); a scalar for a multiple of the identity.",
    allow_singular="must be None.",
)
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Return the logarithm of the density.

    Raises:
        BadArgument: ``allow_singular`` is not None.
        IllTyped: the sizes do not fit.

    >>> stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(-1.837877, dtype=float32)
    """
    if allow_singular is not None:
        raise BadArgument("singular covariances are not available", "None", repr(allow_singular))
    dtype = jnp.result_type(float, x, mean, cov)
    point, middle, spread = (jnp.asarray(y, dtype=dtype) for y in (x, mean, cov))
    if not middle.shape:
        return norm.logpdf(point, middle, jnp.sqrt(spread))
    n = middle.shape[-1]
    if not spread.shape:
        off = point - middle
        size = jnp.sum(off * off, -1) / spread
        return -0.5 * (size + n * math.log(2 * math.pi) + n * jnp.log(spread))
    if spread.shape[-2:] != (n, n):
        raise IllTyped("the covariance does not fit the mean", str((n, n)), str(spread.type))
    low = jnp.linalg.cholesky(spread)
    off = (point - middle)[..., None]
    z = solve_triangular(low, jnp.broadcast_to(off, (*off.shape[:-2], n, 1)), lower=True)[..., 0]
    scale = jnp.sum(jnp.log(jnp.diagonal(low, 0, -2, -1)), -1)
    return -0.5 * jnp.sum(z * z, -1) - 0.5 * n * math.log(2 * math.pi) - scale


@described(
    x="points of shape (..., n).",
    mean="mean, of shape (n,), or a scalar.",
    cov="positive definite covariance, of shape (n, n); a scalar for a multiple of the identity.",
)
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Return the density.

    Raises:
        IllTyped: the sizes do not fit.

    >>> stats.multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(0.15915497, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))
