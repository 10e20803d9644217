"""Random vectors and matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.conversion import as_value
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import diagonal, expand_dims, matrix_transpose
from effax.ir.dtypes import is_float
from effax.ir.errors import IllTyped
from effax.lax import elementwise as el
from effax.numpy import linalg
from effax.numpy import ufuncs as uf
from effax.numpy.einstein import einsum
from effax.random.arguments import chosen, placed, sample_shape
from effax.random.distributions import normal

__all__ = ["multivariate_normal", "orthogonal"]


@placed
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: object = None,
) -> Array:
    """Return normal vectors of a mean and a covariance.

    Args:
        key: random key, or its words.
        mean: means, of shape (..., n).
        cov: symmetric positive definite covariances, of shape (..., n, n).
        shape: shape of the result without its last axis, that of the parameters by default.
        dtype: floating dtype, that of the parameters by default.
        method: factorization of ``cov``: "cholesky", or "eigh" or "svd", which take a
            semidefinite one.
        out_sharding: sharding of the result.

    Returns:
        Array of shape (*shape, n).

    Raises:
        IllTyped: the dtype is not floating, or the shapes do not fit.
        BadArgument: an unknown method.

    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2)).shape
    (2,)
    """
    chosen(method, tuple(_FACTORS), "method of multivariate_normal")
    common = pr.inexact(*pr.common_dtype((mean, cov), "multivariate_normal"))[0]
    kind = common if dtype is None else default_dtype(dtype)
    if not is_float(kind):
        raise IllTyped(
            "dtype argument to `multivariate_normal` must be a float dtype",
            expected="a floating dtype",
            found=str(kind),
        )
    middle, matrix = (uf.astype(as_value(x, "a parameter"), common) for x in (mean, cov))
    if middle.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != (middle.shape[-1],) * 2:
        raise IllTyped(
            "multivariate_normal takes vectors of means and square matrices",
            expected="mean of shape (..., n) and cov of shape (..., n, n)",
            found=f"{middle.type} and {matrix.type}",
        )
    n = middle.shape[-1]
    if n == 0:
        lead = pr.broadcast_shapes([middle.shape[:-1], matrix.shape[:-2]], "multivariate_normal")
        return normal(key, (*(lead if shape is None else plain_shape(shape, "shape")), 0), kind)
    lead = sample_shape(shape, "multivariate_normal", middle[..., 0], matrix[..., 0, 0])
    samples = normal(key, (*lead, n), kind)
    return uf.add(middle, einsum("...ij,...j->...i", _FACTORS[method](matrix), samples))


def _of_eigenvalues(cov: Array) -> Array:
    values, vectors = linalg.eigh(cov)
    return uf.multiply(vectors, uf.sqrt(expand_dims(values, -2)))


def _of_singular_values(cov: Array) -> Array:
    u, values, _ = linalg.svd(cov)
    return uf.multiply(u, uf.sqrt(expand_dims(values, -2)))


_FACTORS: Final[dict[str, Callable[[Array], Array]]] = {
    "cholesky": linalg.cholesky,
    "eigh": _of_eigenvalues,
    "svd": _of_singular_values,
}


@placed
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return random orthogonal matrices, or unitary ones, uniform by Haar's measure.

    Args:
        key: random key, or its words.
        n: number of rows.
        shape: shape of the result without its last two axes.
        dtype: inexact dtype, float32 by default.
        m: number of columns, ``n`` by default; the rows are orthonormal where there are fewer of
            them, else the columns.
        out_sharding: sharding of the result.

    Returns:
        Array of shape (*shape, n, m).

    >>> x = random.orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(x @ x.T, jnp.eye(3), atol=1e-6))
    True
    """
    # Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).
    rows, columns = operator.index(n), operator.index(n if m is None else m)
    sizes = (*plain_shape(shape, "orthogonal"), max(rows, columns), min(rows, columns))
    q, r = linalg.qr(normal(key, sizes, dtype))
    signs = el.sign(diagonal(r, 0, -2, -1))
    x = uf.multiply(q, expand_dims(signs, -2))
    return matrix_transpose(x) if rows < columns else x
