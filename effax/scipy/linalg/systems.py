"""Systems of linear equations, by the factors of their matrices."""

from __future__ import annotations

from typing import Final

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, expand_dims, squeeze
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import linalg as prims
from effax.lax.linalg import lu_pivots_to_permutation
from effax.numpy import factors as _np
from effax.numpy import ufuncs as uf
from effax.numpy.factors import matrices
from effax.numpy.index import take_along_axis
from effax.numpy.sorting import argsort
from effax.scipy.linalg.factors import SYSTEM, triangle

__all__ = ["cho_solve", "lu_solve", "solve", "solve_triangular"]

OPERATIONS: Final[dict[int | str, prims.Op]] = {
    0: prims.Op.PLAIN,
    "N": prims.Op.PLAIN,
    1: prims.Op.TRANSPOSE,
    "T": prims.Op.TRANSPOSE,
    2: prims.Op.ADJOINT,
    "C": prims.Op.ADJOINT,
}
SOLUTION: Final = "Array of the shape of ``b``, batch axes broadcast."


def system(a: ArrayLike, b: ArrayLike, what: str) -> tuple[Array, Array, bool]:
    """Return square matrices and right-hand sides in one dtype and of one batch.

    The last part is whether ``b`` has vectors: it has one axis, or one less than ``a``.
    """
    x, y = matrices(a, what), as_value(b, f"the right-hand side of {what}")
    dtype = pr.inexact(*pr.common_dtype((x, y), what))[0]
    # As in SciPy, what has fewer axes than ``a`` and is no matrix of its rows are vectors.
    n = x.shape[-1]
    vectors = y.ndim == 1 or (y.ndim == x.ndim - 1 and (y.shape[-1] == n and y.shape[-2] != n))
    columns = expand_dims(y, -1) if vectors else y
    if columns.ndim < 2 or columns.shape[-2] != x.shape[-1]:
        expected = f"{x.shape[-1]} rows"
        raise IllTyped(f"the right-hand side of {what} does not fit", expected, str(y.type))
    batch = pr.broadcast_shapes([x.shape[:-2], columns.shape[:-2]], what)
    x, columns = (
        broadcast_to(pr.converted(z, dtype, False), (*batch, *z.shape[-2:])) for z in (x, columns)
    )
    return x, columns, vectors


def triangular(
    a: Array, b: Array, lower: bool, op: prims.Op = prims.Op.PLAIN, unit: bool = False
) -> Array:
    """Return the x with op(a)·x = b, for one triangle of ``a``; both have one dtype and batch."""
    wide = prims.work_dtype(a.dtype)
    x, y = (pr.converted(z, wide, False) for z in (a, b))
    return uf.astype(bind1(prims.TriangularSolve(lower, op, unit), x, y), a.dtype)


def _shaped(x: Array, vectors: bool) -> Array:
    return squeeze(x, -1) if vectors else x


@shared_docs(
    SYSTEM,
    SOLUTION,
    trans="0 or 'N' for ``a``, 1 or 'T' for its transpose, 2 or 'C' for its adjoint.",
)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Array:
    """Return the solution x of ``a @ x = b`` for triangular ``a``; the other triangle is not read.

    Raises:
        BadArgument: an unknown ``trans``.
        IllTyped: the matrices are not square, or ``b`` does not fit.

    >>> linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in OPERATIONS:
        raise BadArgument(
            "unknown operation of solve_triangular", "0, 1, 2, N, T or C", repr(trans)
        )
    x, y, vectors = system(a, b, "solve_triangular")
    return _shaped(triangular(x, y, lower, OPERATIONS[trans], unit_diagonal), vectors)


@shared_docs(SYSTEM, SOLUTION)
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution x of ``a @ x = b`` from the result of ``cho_factor(a)``.

    Raises:
        IllTyped: the factor is not square, or ``b`` does not fit.

    >>> linalg.cho_solve((jnp.array([[2.0, 0.0], [0.0, 1.0]]), True), jnp.array([4.0, 1.0]))
    Array([1., 1.], dtype=float32)
    """
    factor, lower = c_and_lower
    c, y, vectors = system(factor, b, "cho_solve")
    return _shaped(_by_cholesky(c, y, bool(lower)), vectors)


def _by_cholesky(c: Array, y: Array, lower: bool) -> Array:
    first, second = prims.Op.PLAIN, prims.Op.ADJOINT
    if not lower:
        first, second = second, first
    return triangular(c, triangular(c, y, lower, first), lower, second)


@shared_docs(SYSTEM, SOLUTION)
def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution x of ``op(a) @ x = b`` from the result of ``lu_factor(a)``.

    Raises:
        BadArgument: an unknown ``trans``.
        IllTyped: the factors are not square, or ``b`` does not fit.

    >>> a = jnp.array([[0.0, 2.0], [4.0, 0.0]])
    >>> linalg.lu_solve(linalg.lu_factor(a), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise BadArgument("unknown operation of lu_solve", "0, 1 or 2", repr(trans))
    factors, pivots = lu_and_piv
    lu, y, vectors = system(factors, b, "lu_solve")
    order = lu_pivots_to_permutation(pivots, lu.shape[-1])
    order = broadcast_to(order, lu.shape[:-1])
    op = OPERATIONS[trans]
    if op is prims.Op.PLAIN:
        y = take_along_axis(y, expand_dims(order, -1), -2)
        x = triangular(lu, triangular(lu, y, True, op, unit=True), False, op)
    else:
        x = triangular(lu, triangular(lu, y, False, op), True, op, unit=True)
        x = take_along_axis(x, expand_dims(argsort(order, -1), -1), -2)
    return _shaped(x, vectors)


@shared_docs(
    SYSTEM,
    SOLUTION,
    assume_a="'gen', 'sym', 'her'; 'pos' for positive definite, by one triangle.",
)
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Return the solution x of ``a @ x = b``.

    Raises:
        BadArgument: an unknown ``assume_a``.
        IllTyped: the matrices are not square, or ``b`` does not fit.

    >>> linalg.solve(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.array([4.0, 9.0]), assume_a="pos")
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise BadArgument("unknown kind of matrix", "'gen', 'sym', 'her' or 'pos'", repr(assume_a))
    if assume_a != "pos":
        return _np.solve(a, b)
    x, y, vectors = system(a, b, "solve")
    return _shaped(_by_cholesky(triangle(x, lower), y, lower), vectors)
