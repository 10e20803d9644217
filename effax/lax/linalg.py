"""Factorizations of matrices and solutions of systems, by JAX's names in ``lax.linalg``.

Functions apply the primitive of their name; matrices are on the last two axes, in an inexact dtype.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, cast, overload

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind, bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, matrix_transpose
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import INT32, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.prims import Iota, ReduceSum
from effax.ir.prims import linalg as prims
from effax.lax import elementwise as el
from effax.lax.householder import (
    hessenberg,
    householder_product,
    ormqr,
    pivots_of_columns,
    taken,
    tridiagonal,
)
from effax.lax.matrix_products import cholesky_update, qdwh, symmetric_product
from effax.lax.shape import concatenate
from effax.lax.tridiagonal import tridiagonal_solve
from effax.lax.whiles import fori_loop

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update",
    "eig", "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr",
    "qdwh", "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal",
    "tridiagonal_solve",
]  # fmt: skip

Pair = tuple[Array, Array]

PARAMETERS: Final = {
    "x": "array of matrices.",
    "a": "triangular matrices, of shape (..., n, n).",
    "b": "right-hand sides, of shape (..., n, k), or (..., k, n) on the right.",
    "symmetrize_input": "whether to use the mean of the matrix and its adjoint.",
    "lower": "whether the lower triangle is read; else the upper one.",
    "full_matrices": "whether factors are completed to square matrices.",
    "compute_uv": "whether to return the vectors.",
    "subset_by_index": "range of the values that are returned; all by default.",
    "sort_eigenvalues": "accepted as in JAX; eigenvalues are ascending.",
    "implementation": "accepted as in JAX.",
    "use_magma": "accepted as in JAX.",
    "pivoting": "whether columns are exchanged, so that R's diagonal descends in magnitude.",
    "compute_left_eigenvectors": "whether to return vectors u with ``u.H @ x = w * u.H``.",
    "compute_right_eigenvectors": "whether to return vectors v with ``x @ v = v * w``.",
    "enable_eigvec_derivs": "accepted as in JAX; vectors have derivatives.",
    "compute_schur_vectors": "whether to return the unitary matrices.",
    "sort_eig_vals": "must be False.",
    "select_callable": "accepted as in JAX, without effect.",
    "left_side": "whether the matrix is on the left of the unknown.",
    "transpose_a": "whether the transpose of ``a`` is used.",
    "conjugate_a": "whether the conjugate of ``a`` is used.",
    "unit_diagonal": "whether the diagonal is taken as ones.",
}


def _matrices(x: ArrayLike, what: str) -> Array:
    value = as_value(x, f"the operand of {what}")
    if value.ndim < 2:
        raise IllTyped(f"{what} takes matrices", "two axes or more", str(value.type))
    return value


def _factors(prim: Primitive, *xs: Array) -> list[Array]:
    """Apply a factorization; narrow floats are factorized in float32."""
    dtype = xs[0].dtype
    wide = prims.work_dtype(dtype)
    outs = cast("list[Array]", bind(prim, *[pr.converted(x, wide, False) for x in xs]))
    return [pr.converted(y, dtype, False) if y.dtype == wide != dtype else y for y in outs]


def _adjoint(x: Array) -> Array:
    flipped = matrix_transpose(x)
    return el.conj(flipped) if is_complex(x.dtype) else flipped


def _symmetrized(x: Array, wanted: bool) -> Array:
    return el.mul(el.add(x, _adjoint(x)), 0.5) if wanted else x


@shared_docs(PARAMETERS, "Array of the shape of ``x``: the lower factor; nan where there is none.")
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the Cholesky factor L with ``x = L @ L.H``.

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.cholesky(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    return _factors(prims.Cholesky(), _symmetrized(_matrices(x, "cholesky"), symmetrize_input))[0]


@shared_docs(PARAMETERS, "Array of the shape of ``b``.")
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Return the x with ``op(a) @ x = b``, or ``x @ op(a) = b`` by default.

    Raises:
        IllTyped: the matrices are not square, or ``b`` does not fit.

    >>> lax.linalg.triangular_solve(jnp.array([[2.0]]), jnp.array([[4.0]]), left_side=True)
    Array([[2.]], dtype=float32)
    """
    matrix, right = _matrices(a, "triangular_solve"), as_value(b, "the right-hand side")
    vector = right.ndim == matrix.ndim - 1
    if vector:
        right = right[..., None] if left_side else right[..., None, :]
    if conjugate_a and is_complex(matrix.dtype):
        matrix = el.conj(matrix)
    # x·op(a) = b is op(a)ᵀ·xᵀ = bᵀ.
    flip = transpose_a == left_side
    solve = prims.TriangularSolve(
        lower, prims.Op.TRANSPOSE if flip else prims.Op.PLAIN, unit_diagonal
    )
    columns = right if left_side else matrix_transpose(right)
    (found,) = _factors(solve, matrix, columns)
    found = found if left_side else matrix_transpose(found)
    if vector:
        return found[..., 0] if left_side else found[..., 0, :]
    return found


@shared_docs(
    PARAMETERS, "``(lu, pivots, permutation)``: packed factors, exchanges, and order of rows."
)
def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the LU factorization with partial pivoting.

    Raises:
        IllTyped: ``x`` has fewer than 2 axes.

    >>> lax.linalg.lu(jnp.array([[0.0, 2.0], [4.0, 0.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    factors, pivots, order = _factors(prims.Lu(), _matrices(x, "lu"))
    return factors, pivots, order


@overload
def qr(
    x: ArrayLike,
    *,
    pivoting: Literal[False] = ...,
    full_matrices: bool = ...,
    use_magma: bool | None = ...,
) -> Pair: ...
@overload
def qr(
    x: ArrayLike, *, pivoting: bool, full_matrices: bool = ..., use_magma: bool | None = ...
) -> Pair | tuple[Array, Array, Array]: ...
@shared_docs(PARAMETERS, "``(q, r)``, or ``(q, r, p)`` with ``x[:, p] = q @ r``.")
def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> Pair | tuple[Array, Array, Array]:
    """Return the QR factorization: orthonormal columns and an upper triangle.

    Raises:
        IllTyped: ``x`` has fewer than 2 axes.

    >>> lax.linalg.qr(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[1]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    value = _matrices(x, "qr")
    if not pivoting:
        q, r = _factors(prims.Qr(full_matrices), value)
        return q, r
    order = pivots_of_columns(el.stop_gradient(value))
    places = broadcast_to(order[..., None, :], value.shape)
    q, r = _factors(prims.Qr(full_matrices), taken(value, places))
    return q, r, order


class EighImplementation(Enum):
    """Algorithms of Hermitian eigenvalues, all of which yield the same to rounding."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@shared_docs(PARAMETERS, "``(v, w)``: eigenvectors as columns, and eigenvalues in ascending order.")
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Return the eigenvectors and eigenvalues of Hermitian matrices, in this order.

    Raises:
        BadArgument: a subset that is not of values.
        IllTyped: the matrices are not square.

    >>> lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)
    """
    value = _matrices(x, "eigh")
    value = _symmetrized(value if lower else _adjoint(value), symmetrize_input)
    w, v = _factors(prims.Eigh(), value)
    start, stop = _subset(subset_by_index, value.shape[-1], "eigh")
    return v[..., start:stop], w[..., start:stop]


class EigImplementation(Enum):
    """Libraries of eigenvalues; LAPACK's is used on every platform."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


@shared_docs(PARAMETERS, "List of the eigenvalues and the vectors asked for, left first.")
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Return the complex eigenvalues and eigenvectors of square matrices.

    Columns have norm 1, and their leading components are real and positive.

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    prim = prims.Eig(compute_left_eigenvectors, compute_right_eigenvectors)
    return _factors(prim, _matrices(x, "eig"))


@shared_docs(PARAMETERS, "``(t, q)`` with ``x = q @ t @ q.H``, or ``(t,)``.")
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: object = None,
) -> tuple[Array, ...]:
    """Return the Schur form of square matrices: upper triangular, in a unitary basis.

    That of real matrices is real, with blocks of 2 by 2 for pairs of conjugate eigenvalues. It has
    no derivative.

    Raises:
        BadArgument: sorted eigenvalues.
        IllTyped: the matrices are not square.

    >>> lax.linalg.schur(jnp.array([[2.0, 1.0], [0.0, 3.0]]))[0]
    Array([[2., 1.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals:
        raise BadArgument("schur does not sort eigenvalues", "sort_eig_vals=False", "True")
    return tuple(_factors(prims.Schur(compute_schur_vectors), _matrices(x, "schur")))


class SvdAlgorithm(Enum):
    """Algorithms of singular values, all of which yield the same to rounding."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    subset_by_index: tuple[int, int] | None = ...,
    algorithm: SvdAlgorithm | None = ...,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = ...,
    algorithm: SvdAlgorithm | None = ...,
) -> Array: ...
@shared_docs(PARAMETERS, "``(u, s, vh)``, or ``s``.", algorithm="accepted as in JAX.")
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Return the singular value decomposition ``x = u @ diag(s) @ vh``.

    Raises:
        BadArgument: completed factors of a subset, or a subset that is not of values.
        IllTyped: ``x`` has fewer than 2 axes.

    >>> lax.linalg.svd(jnp.array([[2.0, 0.0], [0.0, 3.0]]), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    value = _matrices(x, "svd")
    count = min(value.shape[-2:])
    start, stop = _subset(subset_by_index, count, "svd")
    if not compute_uv:
        return _factors(prims.Svd(vectors=False), value)[0][..., start:stop]
    u, s, vh = _factors(prims.Svd(), value)
    if (start, stop) != (0, count):
        if full_matrices:
            found = f"full_matrices=True, subset_by_index={subset_by_index}"
            raise BadArgument("svd does not complete a subset", "full_matrices=False", found)
        return u[..., start:stop], s[..., start:stop], vh[..., start:stop, :]
    return (completed(u), s, _adjoint(completed(_adjoint(vh)))) if full_matrices else (u, s, vh)


def _subset(given: tuple[int, int] | None, count: int, what: str) -> tuple[int, int]:
    start, stop = (0, count) if given is None else given
    if not 0 <= start <= stop <= count:
        expected = f"(start, stop) with 0 <= start <= stop <= {count}"
        raise BadArgument(f"{what}: subset_by_index has no such values", expected, str(given))
    return start, stop


def completed(columns: Array) -> Array:
    """Complete orthonormal columns to a square matrix."""
    rows, k = columns.shape[-2:]
    if rows == k:
        return columns
    whole, _ = _factors(prims.Qr(full=True), columns)
    return concatenate([columns, whole[..., k:]], columns.ndim - 1)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows after exchanges of row k with row ``pivots[k]``, in sequence.

    Args:
        pivots: integers of shape (..., k).
        permutation_size: number of rows, k or more.

    Returns:
        int32 array of shape (..., permutation_size).

    Raises:
        BadArgument: fewer rows than pivots.
        IllTyped: ``pivots`` has no axes.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1, 2]), 3)
    Array([2, 1, 0], dtype=int32)
    """
    given = el.convert_element_type(as_value(pivots, "the pivots"), INT32)
    if given.ndim < 1:
        raise IllTyped("pivots are vectors", "one axis or more", str(given.type))
    *batch, count = given.shape
    if permutation_size < count:
        expected = f"a size of at least {count}"
        raise BadArgument("there are more pivots than rows", expected, str(permutation_size))
    shape = (*batch, permutation_size)
    places = bind1(Iota(INT32, shape, len(batch)))

    zero = as_value(np.int32(0), "zero")

    def at(x: Array, k: Array) -> Array:
        return broadcast_to(x[..., k][..., None], shape)

    def exchanged(k: Array, order: Array) -> Array:
        k = el.convert_element_type(k, INT32)
        there = at(given, k)
        mine = at(order, k)
        chosen = el.eq(places, there)
        kept = el.select(chosen, order, broadcast_to(zero, shape))
        other = broadcast_to(bind1(ReduceSum((len(batch),)), kept)[..., None], shape)
        order = el.select(chosen, mine, order)
        return el.select(el.eq(places, k), other, order)

    return fori_loop(0, count, exchanged, places)
