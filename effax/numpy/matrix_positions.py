"""Indices of the diagonals and triangles of given matrices."""

from __future__ import annotations

from collections.abc import Callable

from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import ones
from effax.ir.errors import IllTyped
from effax.numpy.positions import diag_indices, nonzero, tril_indices, triu_indices

__all__ = [
    "diag_indices_from", "mask_indices", "tril_indices_from", "triu_indices_from",
]  # fmt: skip


def _square(arr: ArrayLike, what: str) -> Array:
    x = as_value(arr, f"the argument of {what}")
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise IllTyped(f"{what} expects axes of one size", "at least 2 axes", str(x.type))
    return x


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array.

    Args:
        arr: array of at least 2 axes, of one size.

    Returns:
        Tuple of vectors of integers, one for each axis.

    Raises:
        IllTyped: sizes differ, or there are fewer than 2 axes.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = _square(arr, "diag_indices_from")
    return diag_indices(x.shape[0], x.ndim)


def _matrix_sizes(arr: ArrayLike, what: str) -> tuple[int, int]:
    x = as_value(arr, f"the argument of {what}")
    if x.ndim != 2:
        raise IllTyped(f"{what} expects a matrix", "2 axes", str(x.type))
    return x.shape[0], x.shape[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the elements of a matrix on and below a diagonal.

    Args:
        arr: matrix.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Pair of vectors of integers, rows and columns.

    Raises:
        IllTyped: ``arr`` is not a matrix.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_sizes(arr, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the elements of a matrix on and above a diagonal.

    Args:
        arr: matrix.
        k: diagonal; positive ones are above the main diagonal.

    Returns:
        Pair of vectors of integers, rows and columns.

    Raises:
        IllTyped: ``arr`` is not a matrix.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_sizes(arr, "triu_indices_from")
    return triu_indices(rows, k, columns)


def mask_indices(
    n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Return the indices of what a function such as :func:`triu` leaves of a square matrix.

    Args:
        n: number of rows and columns.
        mask_func: function of a matrix of ones and ``k``.
        k: second argument of the function.
        size: number of indices, truncated or filled up.

    Returns:
        Pair of vectors of integers.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)
