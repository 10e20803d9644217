"""The Dirichlet distribution."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import IllTyped
from effax.scipy import special
from effax.scipy.stats.shared import described

__all__ = ["logpdf", "pdf"]


@described(
    x="points of the simplex, along the first axis; the last component may be left out.",
    alpha="parameters, positive, a vector.",
)
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the logarithm of the density; -inf outside of the simplex.

    Raises:
        IllTyped: the sizes do not fit.

    >>> stats.dirichlet.logpdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
    Array(0., dtype=float32)
    """
    point, shape = (jnp.asarray(y, dtype=jnp.result_type(float, x, alpha)) for y in (x, alpha))
    if shape.ndim != 1 or point.ndim < 1 or point.shape[0] not in (shape.size, shape.size - 1):
        expected = f"a first axis of size {shape.size} or {shape.size - 1}"
        raise IllTyped("the points of dirichlet do not fit alpha", expected, str(point.type))
    if point.shape[0] == shape.size - 1:
        point = jnp.concatenate([point, 1 - jnp.sum(point, 0, keepdims=True)])
    total = jnp.sum(point, 0)
    inside = jnp.all(point >= 0, 0) & (jnp.abs(total - 1) < 1e-6)
    columns = jnp.reshape(shape, (-1, *[1] * (point.ndim - 1)))
    terms = special.xlogy(columns - 1, jnp.where(inside, point, 1))
    scale = jnp.sum(special.gammaln(shape)) - special.gammaln(jnp.sum(shape))
    value = jnp.where(inside, jnp.sum(terms, 0) - scale, -jnp.inf)
    return jnp.where(jnp.all(shape > 0), value, jnp.nan)


@described(
    x="points of the simplex, along the first axis; the last component may be left out.",
    alpha="parameters, positive, a vector.",
)
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the density; 0 outside of the simplex.

    Raises:
        IllTyped: the sizes do not fit.

    >>> stats.dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))
