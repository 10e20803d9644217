"""Covariances and correlations of variables."""

from __future__ import annotations

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.conversion import as_value
from effax.arrays.joining import concatenate
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import atleast_2d, expand_dims, squeeze
from effax.ir.dtypes import is_complex, is_inexact_dtype, is_integer
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import clip
from effax.numpy.diagonals import diag
from effax.numpy.products import matmul
from effax.numpy.reduce import sum

__all__ = [
    "corrcoef", "cov",
]  # fmt: skip


def _variables(m: ArrayLike, rowvar: bool, what: str) -> Array:
    """Return variables as the rows of a matrix."""
    x = as_value(m, f"the variables of {what}")
    if x.ndim > 2:
        raise IllTyped(f"{what} expects variables", expected="at most 2 axes", found=str(x.type))
    return atleast_2d(x) if rowvar or x.ndim < 2 else x.T


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the matrix of the covariances of variables, from their observations.

    Args:
        m: variables as rows, observations as columns; or a vector, of one variable.
        y: more variables, in the form of ``m``.
        rowvar: whether rows are the variables; if not, columns are.
        bias: whether sums are divided by the number of observations, not by one less.
        ddof: what is subtracted from the number of observations, instead of what ``bias`` says.
        fweights: vector of the numbers of times that observations were made, of integers.
        aweights: vector of the weights of the observations.
        dtype: dtype of the result; an inexact one by promotion by default.

    Returns:
        Square matrix, a scalar for one variable. It is nan where no degree of freedom is left.

    Raises:
        IllTyped: ``m``, ``y`` or weights have too many axes; ``fweights`` are not integers.

    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    parts = [_variables(part, rowvar, "cov") for part in (m, *([] if y is None else [y]))]
    work, weak = pr.inexact(*pr.common_dtype(parts, "cov"))
    if dtype is not None:
        work, weak = default_dtype(dtype), False
        if not is_inexact_dtype(work):
            raise BadArgument("a covariance has an inexact dtype", "a floating one", str(work))
    x = concatenate([pr.converted(part, work, weak) for part in parts], 0)
    weights = _weights(fweights, aweights, x)
    count: ArrayLike = x.shape[1] if weights is None else sum(weights)
    less: ArrayLike = (0 if bias else 1) if ddof is None else ddof
    if aweights is not None and weights is not None:
        less = less * sum(weights * uf.astype(as_value(aweights), weights.dtype)) / count
    freedom = uf.astype(as_value(count), x.real.dtype) - less
    freedom = uf.where(freedom > 0, freedom, 0)
    x = x - expand_dims(sum(_times(x, weights), 1) / count, 1)
    found = matmul(_times(x, weights), uf.conj(x.T)) / freedom
    return squeeze(found)


def _times(x: Array, weights: Array | None) -> Array:
    return x if weights is None else x * weights


def _weights(fweights: ArrayLike | None, aweights: ArrayLike | None, x: Array) -> Array | None:
    """Return the product of both kinds of weights, for each observation."""
    product: Array | None = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        value = as_value(given, f"{name} of cov")
        if value.shape != (x.shape[1],):
            raise IllTyped(
                f"cov expects a weight for each observation in {name}",
                expected=f"shape ({x.shape[1]},)",
                found=str(value.type),
            )
        if name == "fweights" and not is_integer(value.dtype):
            raise IllTyped("cov counts observations by integers", "integers", str(value.type))
        value = uf.astype(value, x.real.dtype)
        product = value if product is None else product * value
    return product


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return the matrix of the correlations of variables, from their observations.

    Args:
        x: variables as rows, observations as columns; or a vector, of one variable.
        y: more variables, in the form of ``x``.
        rowvar: whether rows are the variables; if not, columns are.
        dtype: dtype of the result; an inexact one by promotion by default.

    Returns:
        Square matrix, a scalar for one variable; parts are in [-1, 1], or nan for constant
        variables.

    >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = uf.sqrt(diag(c).real)
    c = c / expand_dims(deviation, 1) / deviation
    if not is_complex(c.dtype):
        return clip(c, -1, 1)
    return uf.astype(clip(c.real, -1, 1), c.dtype) + 1j * clip(c.imag, -1, 1)
