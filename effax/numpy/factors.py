"""Factorizations of matrices: linear systems, determinants, eigenvalues, singular values."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast, overload

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind
from effax.arrays.conversion import as_value
from effax.arrays.shapes import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    slice_along,
    squeeze,
)
from effax.ir.dtypes import real_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.prims import linalg as prims
from effax.lax import linalg as ll
from effax.lax.householder import reflections
from effax.numpy import ufuncs as uf
from effax.numpy.diagonals import eye
from effax.numpy.reduce import sum
from effax.numpy.spectral import adjoint, cutoff, determinant, nuclear_norm, pseudo_inverse
from effax.numpy.systems import log_determinant, solved_by_lu

__all__ = [
    "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "det", "eigh", "eigvalsh",
    "inv", "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns Q and upper triangular R."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Sign of a determinant, and logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left vectors as columns, descending singular values, adjoint right vectors as rows."""

    U: Array
    S: Array
    Vh: Array


def matrices(a: ArrayLike, what: str, square: bool = True) -> Array:
    """Return an array of matrices, on its last two axes. Raises IllTyped."""
    x = as_value(a, f"the argument of {what}")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        expected = "two axes or more" + ", the last two of one size" * square
        raise IllTyped(f"{what} takes {'square ' * square}matrices", expected, str(x.type))
    return pr.converted(x, pr.inexact(x.dtype, False)[0], False)


def factorized(prim: Primitive, *xs: Array) -> list[Array]:
    """Return the factors, in the dtype of the matrices; narrow floats factorize in float32."""
    dtype = xs[0].dtype
    wide = prims.work_dtype(dtype)
    outs = cast("list[Array]", bind(prim, *(pr.converted(x, wide, False) for x in xs)))
    if wide == dtype:
        return outs
    return [uf.astype(x, dtype) if x.dtype == wide else x for x in outs]


def _widened(x: Array) -> Array:
    """Return matrices in the dtype of their factorizations."""
    return pr.converted(x, prims.work_dtype(x.dtype), False)


def _symmetrized(x: Array, wanted: bool) -> Array:
    return uf.true_divide(uf.add(x, adjoint(x)), 2) if wanted else x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the Cholesky factor L with ``a = L @ L.H``, or U with ``a = U.H @ U``.

    The factor is nan where there is none.

    Args:
        a: Hermitian positive definite matrices, of shape (..., n, n).
        upper: whether to return the upper factor.
        symmetrize_input: whether to factorize the mean of ``a`` and its adjoint; else the lower
            triangle only.

    Returns:
        Array of the shape of ``a``.

    Raises:
        IllTyped: the matrices are not square.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    x = _symmetrized(matrices(a, "cholesky"), symmetrize_input)
    (low,) = factorized(prims.Cholesky(), x)
    return adjoint(low) if upper else low


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the solution x of ``a @ x = b``.

    Args:
        a: array of shape (..., n, n).
        b: vector, or array of shape (..., n, k).

    Returns:
        Array of the shape of ``b``, batch axes broadcast.

    Raises:
        IllTyped: the matrices are not square, or ``b`` does not fit.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    x, y = matrices(a, "solve"), as_value(b, "the right-hand side of solve")
    dtype = pr.inexact(*pr.common_dtype((x, y), "solve"))[0]
    x, y = pr.converted(x, dtype, False), pr.converted(y, dtype, False)
    vector = y.ndim == 1
    if vector:
        y = expand_dims(y, -1)
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise IllTyped(
            "the right-hand side of solve does not fit",
            expected=f"{x.shape[-1]} rows",
            found=str(as_value(b).type),
        )
    batch = pr.broadcast_shapes([x.shape[:-2], y.shape[:-2]], "solve")
    x = broadcast_to(x, (*batch, *x.shape[-2:]))
    y = broadcast_to(y, (*batch, *y.shape[-2:]))
    found = _solve(x, y)
    return squeeze(found, -1) if vector else found


def _solve(x: Array, y: Array) -> Array:
    dtype = x.dtype
    wide = prims.work_dtype(dtype)
    found = solved_by_lu(pr.converted(x, wide, False), pr.converted(y, wide, False))
    return uf.astype(found, dtype)


def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices. Raises IllTyped for other shapes.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrices(a, "inv")
    return _solve(x, broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape))


def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices. Raises IllTyped for other shapes.

    The gradient is the matrix of cofactors, for every rank: d det(A) = tr(adj(A)·dA).

    >>> jnp.linalg.det(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(8., dtype=float32)
    """
    x = matrices(a, "det")
    n = x.shape[-1]
    if 1 <= n <= 3:
        return _written_out(x, n)
    return uf.astype(determinant(_widened(x)), x.dtype)


def _written_out(x: Array, n: int) -> Array:
    def entry(i: int, j: int) -> Array:
        row = slice_along(x, x.ndim - 2, i, i + 1, drop=True)
        return slice_along(row, row.ndim - 1, j, j + 1, drop=True)

    def minor(i: int, j: int, p: int, q: int) -> Array:
        return uf.subtract(
            uf.multiply(entry(i, p), entry(j, q)), uf.multiply(entry(i, q), entry(j, p))
        )

    if n == 1:
        return entry(0, 0)
    if n == 2:
        return minor(0, 1, 0, 1)
    first, second, third = (
        uf.multiply(entry(0, k), minor(1, 2, p, q)) for k, p, q in ((0, 1, 2), (1, 0, 2), (2, 0, 1))
    )
    return uf.add(uf.subtract(first, second), third)


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the signs and the logarithms of the magnitudes of determinants.

    Args:
        a: array of shape (..., n, n).
        method: None, "lu" or "qr"; all compute the same.

    Returns:
        SlogdetResult of arrays without the last two axes.

    Raises:
        BadArgument: an unknown method.
        IllTyped: the matrices are not square.

    >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise BadArgument("unknown method of slogdet", "'lu' or 'qr'", repr(method))
    x = matrices(a, "slogdet")
    found = log_determinant(pr.converted(x, prims.work_dtype(x.dtype), False))
    sign, size = found
    if x.dtype != prims.work_dtype(x.dtype):
        sign, size = (uf.astype(y, x.dtype) for y in found)
    return SlogdetResult(sign, size)


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: str) -> QRResult | Array: ...
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array:
    """Return the QR factorization ``a = Q @ R``: orthonormal columns and an upper triangle.

    Args:
        a: array of shape (..., n, m).
        mode: "reduced" for min(n, m) columns of Q, "complete" for a square Q, "r" for R alone,
            "raw" for the transpose of the packed reflections and their factors.

    Returns:
        QRResult; R alone for mode "r".

    Raises:
        BadArgument: an unknown mode.
        IllTyped: ``a`` has fewer than 2 axes.
        NotApplicable: a completed Q is differentiated.

    >>> jnp.linalg.qr(jnp.array([[2.0, 0.0], [0.0, 3.0]])).R
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if mode not in ("reduced", "complete", "full", "r", "raw"):
        raise BadArgument("unknown mode of qr", "reduced, complete, r or raw", repr(mode))
    x = matrices(a, "qr", square=False)
    if mode == "raw":
        packed, taus = reflections(_widened(x))
        return QRResult(uf.astype(matrix_transpose(packed), x.dtype), uf.astype(taus, x.dtype))
    q, r = factorized(prims.Qr(mode == "complete"), x)
    return r if mode == "r" else QRResult(q, r)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:  # noqa: N803  NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices.

    The leading component of each real vector is positive. Vectors of equal eigenvalues have no
    derivative: it is nan, also in products such as ``(v * w) @ v.T``. Symmetric functions of equal
    eigenvalues have the right first derivative, and second derivatives of nan.

    Args:
        a: array of shape (..., n, n).
        UPLO: "L" or "U", the triangle to use where the input is not symmetrized.
        symmetrize_input: whether to use the mean of ``a`` and its adjoint.

    Returns:
        EighResult of shapes (..., n) and (..., n, n).

    Raises:
        BadArgument: ``UPLO`` is another string.
        IllTyped: the matrices are not square.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise BadArgument("unknown triangle of eigh", "'L' or 'U'", repr(UPLO))
    x = matrices(a, "eigh")
    x = _symmetrized(adjoint(x) if UPLO == "U" else x, symmetrize_input)
    return EighResult(*factorized(prims.Eigh(), x))


def eigvalsh(
    a: ArrayLike,
    UPLO: str | None = "L",  # noqa: N803  NumPy's name
    *,
    symmetrize_input: bool = True,
) -> Array:
    """Return the eigenvalues of Hermitian matrices in ascending order; see :func:`eigh`.

    Args:
        a: array of shape (..., n, n).
        UPLO: "L" or "U", the triangle to use where the input is not symmetrized.
        symmetrize_input: whether to use the mean of ``a`` and its adjoint.

    Returns:
        Real array of shape (..., n).

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array:
    """Return the singular value decomposition ``a = U @ diag(S) @ Vh``.

    The leading component of each real row of Vh is positive. Vectors of equal singular values have
    no derivative: it is nan, also in products such as ``(u * s) @ vh``, and so are those of vectors
    of the value 0 of a rectangular or complex matrix. Symmetric functions of equal values have the
    right first derivative, and second derivatives of nan.

    Args:
        a: array of shape (..., n, m).
        full_matrices: whether to complete U and Vh to square matrices.
        compute_uv: whether to return the vectors.
        hermitian: ignored; for compatibility with NumPy.
        subset_by_index: range of the values that are returned; all by default.

    Returns:
        SVDResult, S in descending order; only S without ``compute_uv``.

    Raises:
        BadArgument: completed vectors of a subset, or a subset that is not of values.
        NotApplicable: completed vectors are differentiated.
        IllTyped: ``a`` has fewer than 2 axes.

    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    x = matrices(a, "svd", square=False)
    if not compute_uv:
        return ll.svd(x, compute_uv=False, subset_by_index=subset_by_index)
    found = ll.svd(x, full_matrices=full_matrices, subset_by_index=subset_by_index)
    return SVDResult(*found)


def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values in descending order.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    The derivative is that along matrices of the same rank (Golub and Pereyra 1973, 4.12), and
    exists for equal singular values.

    Args:
        a: array of shape (..., n, m).
        rtol: cutoff of singular values relative to the largest; by default ``10 * max(n, m) *
            eps``.
        hermitian: ignored; for compatibility with NumPy.
        rcond: the former name of ``rtol``.

    Returns:
        Array of shape (..., m, n).

    Raises:
        IllTyped: ``a`` has fewer than 2 axes.
        BadArgument: both ``rtol`` and ``rcond`` are given.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    rtol = _one_cutoff(rtol, rcond, "pinv", "rtol and rcond")
    x = matrices(a, "pinv", square=False)
    wide = _widened(x)
    least = None if rtol is None else uf.astype(as_value(rtol), real_dtype(wide.dtype))
    return uf.astype(pseudo_inverse(wide, least), x.dtype)


def _one_cutoff(
    rtol: ArrayLike | None, other: ArrayLike | None, what: str, names: str
) -> ArrayLike | None:
    if rtol is not None and other is not None:
        raise BadArgument(f"{what}: only one of {names} may be specified.")
    return other if rtol is None else rtol


def matrix_rank(
    M: ArrayLike,  # noqa: N803  NumPy's name
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Return the number of singular values above ``rtol`` times the largest.

    Args:
        M: array of shape (..., n, m); the rank of a scalar or vector is 0 where all is 0, else 1.
        rtol: relative cutoff; by default ``max(n, m) * eps``.
        hermitian: ignored; for compatibility with NumPy.
        tol: absolute cutoff instead.

    Returns:
        Integer array without the last two axes.

    Raises:
        BadArgument: both ``rtol`` and ``tol`` are given.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 1.0], [1.0, 1.0]]))
    Array(1, dtype=int32)
    """
    _one_cutoff(rtol, tol, "matrix_rank", "tol or rtol")
    given = as_value(M, "the argument of matrix_rank")
    if given.ndim < 2:
        return uf.astype(uf.not_equal(given, 0).any(), int)
    x = matrices(given, "matrix_rank", square=False)
    s = svdvals(x)
    if tol is None:
        least = cutoff(x, s, None if rtol is None else as_value(rtol))
    else:
        least = expand_dims(as_value(tol), -1)
    return sum(uf.astype(uf.greater(s, least), int), -1)


def sum_of_values(x: Array) -> Array:
    """Return the sums of the singular values of matrices of inexact numbers."""
    return uf.astype(nuclear_norm(_widened(x)), real_dtype(x.dtype))
