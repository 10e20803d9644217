"""Linear algebra by factorisation: solving, determinants, eigenvalues, singular values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast, overload

import numpy as np

from effax.arrays.binding import bind
from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.prims import linalg as prims
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.diagonals import eye
from effax.numpy.dtypes import finfo
from effax.numpy.join import concatenate
from effax.numpy.products import matmul
from effax.numpy.reduce import max, prod, sum
from effax.numpy.shapes import (
    broadcast_to,
    diagonal,
    expand_dims,
    flip,
    matrix_transpose,
    slice_along,
    squeeze,
)
from effax.numpy.systems import log_determinant, odd_exchanges, solved_by_lu

__all__ = [
    "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "det", "eigh",
    "eigvalsh", "inv", "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left vectors as columns, values in descending order, right vectors as (conjugate) rows."""

    U: Array
    S: Array
    Vh: Array


def _matrices(a: ArrayLike, what: str, square: bool = True) -> Array:
    x = as_value(a, f"the argument of {what}")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        expected = "two axes or more" + ", the last two of one size" * square
        raise IllTyped(f"{what} takes {'square ' * square}matrices", expected, str(x.type))
    return pr.converted(x, pr.inexact(x.dtype, False)[0], False)


def _factors(prim: Primitive, *xs: Array) -> list[Array]:
    """The factors, in the dtype of the matrices; narrow floats are factorised in float32."""
    dtype = xs[0].dtype
    wide = prims.work_dtype(dtype)
    outs = cast("list[Array]", bind(prim, *(pr.converted(x, wide, False) for x in xs)))
    if wide == dtype:
        return outs
    return [uf.astype(x, dtype) if x.dtype == wide else x for x in outs]


def _adjoint(x: Array) -> Array:
    flipped = matrix_transpose(x)
    return uf.conj(flipped) if is_complex(x.dtype) else flipped


def _symmetrized(x: Array, wanted: bool) -> Array:
    return uf.true_divide(uf.add(x, _adjoint(x)), 2) if wanted else x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with a = L·Lᴴ, or the upper one with a = Uᴴ·U; nan if there is none.

    Args:
        a: Hermitian positive matrices.
        upper: whether the upper triangle is given.
        symmetrize_input: whether the mean of ``a`` and its adjoint is taken; else the lower
            triangle alone counts.
    """
    x = _symmetrized(_matrices(a, "cholesky"), symmetrize_input)
    (low,) = _factors(prims.Cholesky(), x)
    return _adjoint(low) if upper else low


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a·x = b.

    Args:
        a: square matrices.
        b: a vector, or matrices whose columns are solved for.

    Raises:
        IllTyped: the matrices are not square, or the right-hand side does not fit.
    """
    x, y = _matrices(a, "solve"), as_value(b, "the right-hand side of solve")
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
    """The inverse of square matrices."""
    x = _matrices(a, "inv")
    return _solve(x, broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape))


def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    Of up to three rows it is written out, so that its derivative is exact also where it is 0.
    """
    x = _matrices(a, "det")
    n = x.shape[-1]
    if 1 <= n <= 3:
        return _written_out(x, n)
    lu, pivots, _ = _factors(prims.Lu(), x)
    product = prod(diagonal(lu, 0, -2, -1), -1)
    return uf.where(odd_exchanges(pivots), uf.negative(product), product)


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
    """The sign of the determinant and the logarithm of its magnitude; 0 and -inf where it is 0."""
    if method not in (None, "lu"):
        raise BadArgument("slogdet knows one method", "'lu'", repr(method))
    x = _matrices(a, "slogdet")
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
    """``a = Q·R`` with orthonormal columns and an upper triangle.

    Args:
        a: matrices.
        mode: "reduced" for no more columns of Q than of a, "complete" for a square Q, "r" for R
            alone.

    Raises:
        NotApplicable: it is differentiated where a has more columns than rows, or where Q is
            completed.
    """
    if mode not in ("reduced", "complete", "full", "r"):
        raise BadArgument("qr knows no such mode", "reduced, complete or r", repr(mode))
    x = _matrices(a, "qr", square=False)
    q, r = _factors(prims.Qr(mode in ("complete", "full")), x)
    return r if mode == "r" else QRResult(q, r)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:  # noqa: N803  NumPy's name
    """Eigenvalues, ascending, and eigenvectors, as columns, of Hermitian matrices.

    Of real ones, the leading component of each vector is positive. Where eigenvalues are equal,
    derivatives that would turn their vectors among themselves are taken for 0.

    Args:
        a: the matrices.
        UPLO: "L" or "U", the triangle that counts, where the input is not symmetrized.
        symmetrize_input: whether the mean of ``a`` and its adjoint is taken.
    """
    if UPLO not in (None, "L", "U"):
        raise BadArgument("UPLO names a triangle", "'L' or 'U'", repr(UPLO))
    x = _matrices(a, "eigh")
    x = _symmetrized(_adjoint(x) if UPLO == "U" else x, symmetrize_input)
    return EighResult(*_factors(prims.Eigh(), x))


def eigvalsh(
    a: ArrayLike,
    UPLO: str | None = "L",  # noqa: N803  NumPy's name
    *,
    symmetrize_input: bool = True,
) -> Array:
    """The eigenvalues of :func:`eigh`."""
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True
) -> SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Array: ...
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Array:
    """``a = U·diag(S)·Vh`` with orthonormal columns of U and rows of Vh, S descending.

    Of real matrices, the leading component of each row of Vh is positive. Where singular values
    are equal, derivatives that would turn their vectors among themselves are taken for 0.

    Args:
        a: matrices.
        full_matrices: whether U and Vh are completed to square matrices.
        compute_uv: whether the vectors are results, too.

    Raises:
        NotApplicable: completed vectors are differentiated.
    """
    x = _matrices(a, "svd", square=False)
    if not compute_uv:
        return _factors(prims.Svd(vectors=False), x)[0]
    u, s, vh = _factors(prims.Svd(), x)
    if full_matrices:
        u, vh = _completed(u), _adjoint(_completed(_adjoint(vh)))
    return SVDResult(u, s, vh)


def _completed(columns: Array) -> Array:
    """Orthonormal columns, and more of them, to a square matrix."""
    *_, rows, k = columns.shape
    if rows == k:
        return columns
    whole, _ = _factors(prims.Qr(full=True), columns)
    rest = slice_along(whole, whole.ndim - 1, k, rows)
    return concatenate([columns, rest], -1)


def svdvals(x: ArrayLike, /) -> Array:
    """Singular values in descending order."""
    return svd(x, compute_uv=False)


def _cutoff(x: Array, s: Array, rtol: ArrayLike | None, unit: float = 1.0) -> Array:
    """Below what a singular value is taken for 0."""
    size = float(np.max(x.shape[-2:]))
    least = unit * size * float(finfo(s.dtype).eps) if rtol is None else rtol
    return uf.multiply(max(s, -1, keepdims=True, initial=0), expand_dims(as_value(least), -1))


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
        a: matrices.
        rtol: singular values of no more than this part of the greatest are taken for 0; by
            default ten times the greater size times the precision of the dtype.
        hermitian: kept for likeness with NumPy.
    """
    x = _matrices(a, "pinv", square=False)
    u, s, vh = _factors(prims.Svd(), x)
    there = uf.greater(s, _cutoff(x, s, rtol, 10.0))
    inverse = uf.where(there, uf.true_divide(1, uf.where(there, s, 1)), 0)
    scaled = uf.multiply(_adjoint(vh), expand_dims(uf.astype(inverse, x.dtype), -2))
    return matmul(scaled, _adjoint(u))


def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None) -> Array:  # noqa: N803  NumPy's name
    """How many singular values are more than ``rtol`` times the greatest."""
    x = _matrices(M, "matrix_rank", square=False)
    s = svdvals(x)
    return sum(uf.astype(uf.greater(s, _cutoff(x, s, rtol)), int), -1)


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number: the norm times that of the inverse; of singular values by default."""
    value = _matrices(x, "cond", square=False)
    if p in (None, 2, -2):
        s = svdvals(value)
        first, last = (
            slice_along(flip(s, -1) if back else s, s.ndim - 1, 0, 1, drop=True)
            for back in (False, True)
        )
        return uf.true_divide(last, first) if p == -2 else uf.true_divide(first, last)
    from effax.numpy.linalg import matrix_norm

    return uf.multiply(matrix_norm(value, ord=p), matrix_norm(inv(value), ord=p))


def norm_of_values(x: Array, combine: Callable[..., Array], axes: Sequence[int]) -> Array:
    """A combination of the singular values of matrices on these axes, which go."""
    from effax.numpy.shapes import moveaxis

    return combine(svdvals(moveaxis(x, tuple(axes), (-2, -1))), -1)
