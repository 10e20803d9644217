"""Diagonal and triangular matrices."""

from __future__ import annotations

import numpy as np

from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_shape
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.indexing import integer_positions
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.ir.errors import IllTyped
from effax.ir.prims import Iota
from effax.ir.types import Shape
from effax.numpy import ufuncs as uf
from effax.numpy.padding import pad

__all__ = [
    "diag", "diagflat", "eye", "identity", "tri", "tril", "triu",
]  # fmt: skip


def _counted(shape: Shape, axis: int) -> Array:
    return bind1(Iota(np.dtype(np.int32), shape, axis))


def _shifted_rows(shape: Shape, k: ArrayLike) -> Array:
    """Return the row of each position, plus k, which may be traced."""
    rows = _counted(shape, 0)
    if isinstance(k, int):
        # Beyond the corners no element is on the diagonal, and k need not fit into the dtype.
        k = min(max(k, -shape[0]), shape[1])
        return uf.add(rows, k) if k else rows
    return uf.add(rows, integer_positions(k, "the diagonal"))


def _on_or_below(shape: Shape, k: ArrayLike) -> Array:
    """Return whether the column of a position is at most its row + k."""
    return uf.greater_equal(_shifted_rows(shape, k), _counted(shape, 1))


def _diagonal_mask(shape: Shape, k: ArrayLike) -> Array:
    return uf.equal(_shifted_rows(shape, k), _counted(shape, 1))


def eye(
    N: int,  # noqa: N803  NumPy's name
    M: int | None = None,  # noqa: N803  NumPy's name
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
) -> Array:
    """Return a matrix with ones on its ``k``-th diagonal.

    Args:
        N: number of rows.
        M: number of columns, ``N`` by default.
        k: diagonal; positive ones are above the main diagonal.
        dtype: dtype of the result, float32 by default.
        device: the first device, its platform, or a sharding over it; None is the first.

    Returns:
        Array of shape (N, M).

    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    shape = plain_shape((N, N if M is None else M), "eye")
    made = uf.astype(_diagonal_mask(shape, k), default_dtype(dtype))
    return on_device(made, device, "eye")


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Return the identity matrix.

    Args:
        n: number of rows and columns.
        dtype: dtype of the result, float32 by default.

    Returns:
        Array of shape (n, n).

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(
    N: int,  # noqa: N803  NumPy's name
    M: int | None = None,  # noqa: N803  NumPy's name
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return a matrix with ones on and below its ``k``-th diagonal.

    Args:
        N: number of rows.
        M: number of columns, ``N`` by default.
        k: diagonal; positive ones are above the main diagonal.
        dtype: dtype of the result, float32 by default.

    Returns:
        Array of shape (N, M).

    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    shape = plain_shape((N, N if M is None else M), "tri")
    return uf.astype(_on_or_below(shape, k), default_dtype(dtype))


def tril(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Return matrices with zeros above the ``k``-th diagonal.

    Args:
        m: array of matrices on the last two axes.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Array of the shape and dtype of ``m``.

    Raises:
        IllTyped: ``m`` has fewer than 2 axes.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    value = _matrices(m, "tril")
    below = _on_or_below(value.shape[-2:], k)
    return uf.masked(sh.broadcast_to(below, value.shape), value)


def triu(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Return matrices with zeros below the ``k``-th diagonal.

    Args:
        m: array of matrices on the last two axes.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Array of the shape and dtype of ``m``.

    Raises:
        IllTyped: ``m`` has fewer than 2 axes.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    value = _matrices(m, "triu")
    above = uf.invert(
        _on_or_below(value.shape[-2:], k - 1 if isinstance(k, int) else uf.subtract(k, 1))
    )
    return uf.masked(sh.broadcast_to(above, value.shape), value)


def _matrices(m: ArrayLike, what: str) -> Array:
    value = as_value(m, f"the argument of {what}")
    if value.ndim < 2:
        raise IllTyped(f"{what} takes matrices", expected="at least 2 axes", found=str(value.type))
    return value


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix with diagonal ``v``, or the diagonal of a matrix ``v``.

    Args:
        v: vector or matrix.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Matrix for a vector, vector for a matrix.

    Raises:
        IllTyped: ``v`` is neither a vector nor a matrix.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    value = as_value(v, "the argument of diag")
    if value.ndim == 2:
        return sh.diagonal(value, k)
    if value.ndim != 1:
        raise IllTyped("diag takes a vector or a matrix", "1 or 2 axes", str(value.type))
    n = value.shape[0] + abs(k)
    padded = pad(value, (max(0, k), max(0, -k)))
    return uf.masked(_diagonal_mask((n, n), k), sh.broadcast_to(padded, (n, n)))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix with the flattened ``v`` on its ``k``-th diagonal.

    Args:
        v: array or scalar.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Square matrix of the dtype of ``v``.

    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return diag(sh.ravel(v), k)
