"""Eigenvalues and eigenvectors of general matrices."""

from __future__ import annotations

from typing import NamedTuple

from effax.arrays.array import Array, ArrayLike
from effax.ir.prims import linalg as prims
from effax.numpy.factors import factorized, matrices

__all__ = ["EigResult", "eig", "eigvals"]


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


def eig(a: ArrayLike) -> EigResult:
    """Return the complex eigenvalues and eigenvectors of square matrices.

    Columns have norm 1, and their leading components are real and positive. Vectors of equal
    eigenvalues have no derivative: it is nan.

    Args:
        a: array of shape (..., n, n).

    Returns:
        EigResult of shapes (..., n) and (..., n, n); nan for matrices that are not finite.

    Raises:
        IllTyped: the matrices are not square.

    >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*factorized(prims.Eig(), matrices(a, "eig")))


def eigvals(a: ArrayLike) -> Array:
    """Return the complex eigenvalues of square matrices; see :func:`eig`.

    The derivatives of equal eigenvalues are those of their sum, each one nan where the matrix has
    too few eigenvectors.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return factorized(prims.Eig(right=False), matrices(a, "eigvals"))[0]
