"""Factorizations of matrices, and functions by them."""

from __future__ import annotations

from typing import Final, Literal, cast, overload

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind, bind1
from effax.arrays.shapes import expand_dims
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument
from effax.ir.prims import linalg as prims
from effax.lax import linalg as ll
from effax.numpy import factors as _np
from effax.numpy import ufuncs as uf
from effax.numpy.diagonals import eye, tril, triu
from effax.numpy.factors import matrices
from effax.numpy.index import take_along_axis
from effax.numpy.products import matmul
from effax.numpy.ranges import arange
from effax.numpy.sorting import argsort
from effax.numpy.spectral import adjoint

__all__ = [
    "cho_factor", "cholesky", "det", "eigh", "inv", "lu", "lu_factor", "qr", "svd",
]  # fmt: skip

IGNORED: Final = "accepted as in SciPy, without effect."
SYSTEM: Final = {
    "a": "array of shape (..., n, n).",
    "b": "vectors of shape (..., n), or columns of shape (..., n, k).",
    "lower": "whether the lower triangle is used.",
    "unit_diagonal": "whether the diagonal is taken as ones.",
    "c_and_lower": "factor of shape (..., n, n), and whether it is lower.",
    "lu_and_piv": "factors of shape (..., n, n), and pivots of shape (..., n).",
    "trans": "0 for ``a``, 1 for its transpose, 2 for its adjoint.",
    "overwrite_a": IGNORED,
    "overwrite_b": IGNORED,
    "debug": IGNORED,
    "check_finite": IGNORED,
}
FACTOR: Final = "Array of the shape of ``a``."


def triangle(a: Array, lower: bool) -> Array:
    """Return Cholesky's factor from one triangle; L with a = L·Lᴴ, or U with a = Uᴴ·U."""
    factor = _np.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


@shared_docs(SYSTEM, FACTOR)
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return the Cholesky factor U with ``a = U.H @ U``, or L with ``a = L @ L.H``.

    One triangle is read; the other one of the factor is 0. The factor is nan where there is none.

    Raises:
        IllTyped: the matrices are not square.

    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    return triangle(matrices(a, "cholesky"), lower)


@shared_docs(SYSTEM, "Pair of the factor, of the shape of ``a``, and ``lower``.")
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Return the Cholesky factor for ``cho_solve``, and whether it is lower.

    Raises:
        IllTyped: the matrices are not square.

    >>> linalg.cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return triangle(matrices(a, "cho_factor"), lower), lower


def lu_parts(a: ArrayLike, what: str) -> tuple[Array, Array, Array]:
    """Return the packed factors, the pivots and the order of rows."""
    x = matrices(a, what, square=False)
    wide = pr.converted(x, prims.work_dtype(x.dtype), False)
    factors, pivots, order = cast("list[Array]", bind(prims.Lu(), wide))
    return uf.astype(factors, x.dtype), pivots, order


@shared_docs(
    SYSTEM,
    "Pair of the packed factors, of the shape of ``a``, and int32 pivots.",
    a="array of shape (..., m, n).",
)
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return the packed LU factors and the pivots, for ``lu_solve``.

    Row k is exchanged with row ``pivots[k]``, in order.

    Raises:
        IllTyped: ``a`` has fewer than 2 axes.

    >>> linalg.lu_factor(jnp.array([[1.0, 2.0], [2.0, 0.0]]))[0]
    Array([[2. , 0. ],
           [0.5, 2. ]], dtype=float32)
    """
    factors, pivots, _ = lu_parts(a, "lu_factor")
    return factors, pivots


@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@shared_docs(
    SYSTEM,
    "``(p, l, u)``, or ``(p @ l, u)`` with ``permute_l``.",
    a="array of shape (..., m, n).",
    permute_l="whether to return the product of p and l.",
)
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Return ``a = p @ l @ u``: a permutation, a unit lower triangle and an upper one.

    Raises:
        IllTyped: ``a`` has fewer than 2 axes.

    >>> linalg.lu(jnp.array([[0.0, 2.0], [4.0, 0.0]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    factors, _, order = lu_parts(a, "lu")
    m, n = factors.shape[-2:]
    k = min(m, n)
    lower = uf.add(tril(factors[..., :k], -1), eye(m, k, dtype=factors.dtype))
    upper = triu(factors[..., :k, :])
    if permute_l:
        return take_along_axis(lower, expand_dims(argsort(order, -1), -1), -2), upper
    ones = uf.equal(expand_dims(order, -2), expand_dims(arange(m, dtype="int32"), -1))
    return uf.astype(ones, factors.dtype), lower, upper


@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: Literal["full", "economic"] = "full",
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]: ...
@shared_docs(
    SYSTEM,
    "``(q, r)``, or ``(r,)`` for mode 'r'; with ``pivoting`` also the order p of the columns.",
    a="array of shape (..., m, n).",
    lwork=IGNORED,
    mode="'full' for a square q, 'economic' for min(m, n) columns, 'r' for r alone.",
    pivoting="whether columns are exchanged: ``a[:, p] = q @ r``, r's diagonal descending.",
)
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Return the QR factorization ``a = q @ r``: orthonormal columns and an upper triangle.

    Raises:
        BadArgument: an unknown mode.
        IllTyped: ``a`` has fewer than 2 axes.

    >>> linalg.qr(jnp.array([[2.0, 0.0], [0.0, 3.0]]), mode="r")
    (Array([[2., 0.],
           [0., 3.]], dtype=float32),)
    """
    if mode not in ("full", "r", "economic"):
        raise BadArgument("unknown mode of qr", "'full', 'r' or 'economic'", repr(mode))
    x = matrices(a, "qr", square=False)
    found = ll.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return found[1:] if mode == "r" else found


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@shared_docs(
    SYSTEM,
    "``(u, s, vh)``, or ``s``.",
    a="array of shape (..., m, n).",
    full_matrices="whether to complete u and vh to square matrices.",
    compute_uv="whether to return the vectors.",
    lapack_driver=IGNORED,
)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """Return the singular value decomposition ``a = u @ diag(s) @ vh``.

    Raises:
        IllTyped: ``a`` has fewer than 2 axes.

    >>> linalg.svd(jnp.array([[2.0, 0.0], [0.0, 3.0]]), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    if not compute_uv:
        return _np.svd(a, full_matrices, compute_uv=False)
    u, s, vh = _np.svd(a, full_matrices)
    return u, s, vh


@shared_docs(SYSTEM, "Array without the last two axes.")
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices. Raises IllTyped for other shapes.

    >>> linalg.det(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(8., dtype=float32)
    """
    return _np.det(a)


@shared_docs(SYSTEM, FACTOR)
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices. Raises IllTyped for other shapes.

    >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _np.inv(a)


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@shared_docs(
    SYSTEM,
    "Eigenvalues of shape (..., n), ascending, and vectors as columns; the values alone.",
    a="Hermitian matrices, of shape (..., n, n), of which one triangle is read.",
    b="positive definite matrices of the same shape; the identity by default.",
    eigvals_only="whether to return the eigenvalues alone.",
    turbo=IGNORED,
    eigvals="must be None.",
    type="1 for ``a @ v = w * b @ v``, 2 for ``a @ b @ v = w * v``, 3 for ``b @ a @ v = w * v``.",
)
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of Hermitian matrices, also generalized ones.

    Raises:
        BadArgument: ``eigvals`` is not None, or an unknown ``type``.
        IllTyped: the matrices are not square.

    >>> linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if eigvals is not None:
        raise BadArgument("eigh returns all eigenvalues", "eigvals=None", repr(eigvals))
    if type not in (1, 2, 3):
        raise BadArgument("unknown type of problem", "1, 2 or 3", repr(type))
    if b is None:
        w, v = _np.eigh(a, "L" if lower else "U", symmetrize_input=False)
    else:
        w, v = _generalized(
            hermitian(a, lower, "eigh"), triangle(matrices(b, "eigh"), lower), lower, type
        )
    return w if eigvals_only else (w, v)


def hermitian(a: ArrayLike, lower: bool, what: str) -> Array:
    """Return the Hermitian matrices of one triangle."""
    x = matrices(a, what)
    kept = tril(x) if lower else triu(x)
    return uf.add(kept, adjoint(tril(x, -1) if lower else triu(x, 1)))


def _generalized(a: Array, factor: Array, lower: bool, type: int) -> tuple[Array, Array]:
    """Reduce the problem by b = L·Lᴴ.

    a·v = w·b·v is L⁻¹·a·L⁻ᴴ·u = w·u with v = L⁻ᴴ·u; the others are Lᴴ·a·L·u = w·u with v = L⁻ᴴ·u
    and v = L·u.
    """
    low = factor if lower else adjoint(factor)

    def divided(x: Array, op: prims.Op) -> Array:
        return bind1(prims.TriangularSolve(True, op), low, x)

    if type == 1:
        left = divided(a, prims.Op.PLAIN)
        inner = adjoint(divided(adjoint(left), prims.Op.PLAIN))
    else:
        inner = matmul(adjoint(low), matmul(a, low))
    w, u = _np.eigh(inner)
    return w, matmul(low, u) if type == 3 else divided(u, prims.Op.ADJOINT)
