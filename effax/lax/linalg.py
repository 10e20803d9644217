"""Factorizations of matrices and solutions of systems, by JAX's names in ``lax.linalg``.

Functions apply the primitive of their name; matrices are on the last two axes, in an inexact dtype.
"""

from __future__ import annotations

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
from effax.lax.control import scan
from effax.lax.householder import householder_product, ormqr
from effax.lax.whiles import fori_loop

__all__ = [
    "cholesky", "eigh", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qr",
    "svd", "triangular_solve", "tridiagonal_solve",
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
    "left_side": "whether the matrix is on the left of the unknown.",
    "transpose_a": "whether the transpose of ``a`` is used.",
    "conjugate_a": "whether the conjugate of ``a`` is used.",
    "unit_diagonal": "whether the diagonal is taken as ones.",
    "dl": "lower diagonals, of shape (..., n); the first element is not used.",
    "d": "diagonals, of shape (..., n).",
    "du": "upper diagonals, of shape (..., n); the last element is not used.",
    "perturb_singular": "must be False.",
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
    """Return the LU factorization with partial pivoting of square matrices.

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.lu(jnp.array([[0.0, 2.0], [4.0, 0.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    factors, pivots, order = _factors(prims.Lu(), _matrices(x, "lu"))
    return factors, pivots, order


@shared_docs(PARAMETERS, "``(q, r)``.")
def qr(x: ArrayLike, *, full_matrices: bool = True) -> tuple[Array, Array]:
    """Return the QR factorization: orthonormal columns and an upper triangle.

    Raises:
        IllTyped: ``x`` has fewer than 2 axes.

    >>> lax.linalg.qr(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[1]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    q, r = _factors(prims.Qr(full_matrices), _matrices(x, "qr"))
    return q, r


@shared_docs(PARAMETERS, "``(v, w)``: eigenvectors as columns, and eigenvalues in ascending order.")
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Array, Array]:
    """Return the eigenvectors and eigenvalues of Hermitian matrices, in this order.

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)
    """
    value = _matrices(x, "eigh")
    value = _symmetrized(value if lower else _adjoint(value), symmetrize_input)
    w, v = _factors(prims.Eigh(), value)
    if subset_by_index is not None:
        start, stop = subset_by_index
        return v[..., start:stop], w[..., start:stop]
    return v, w


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...
@shared_docs(PARAMETERS, "``(u, s, vh)``, or ``s``.")
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Return the singular value decomposition ``x = u @ diag(s) @ vh``.

    Raises:
        BadArgument: completed factors of matrices that are not square, or of a subset.
        IllTyped: ``x`` has fewer than 2 axes.

    >>> lax.linalg.svd(jnp.array([[2.0, 0.0], [0.0, 3.0]]), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    value = _matrices(x, "svd")
    start, stop = (0, min(value.shape[-2:])) if subset_by_index is None else subset_by_index
    if not compute_uv:
        return _factors(prims.Svd(vectors=False), value)[0][..., start:stop]
    whole = subset_by_index is None and value.shape[-1] == value.shape[-2]
    if full_matrices and not whole:
        raise BadArgument(
            "svd does not complete these factors",
            expected="square matrices, and no subset",
            found=str(value.type),
            remedy="pass full_matrices=False, or use `numpy.linalg.svd`",
        )
    u, s, vh = _factors(prims.Svd(), value)
    return u[..., start:stop], s[..., start:stop], vh[..., start:stop, :]


@shared_docs(
    PARAMETERS, "Array of the shape of ``b``.", b="right-hand sides, of shape (..., n, k)."
)
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Return the solution of tridiagonal systems, by elimination without pivoting.

    Raises:
        BadArgument: ``perturb_singular`` is True.
        IllTyped: shapes do not fit.

    >>> lax.linalg.tridiagonal_solve(
    ...     *[jnp.array([0.0, 0.0]), jnp.array([2.0, 4.0])],
    ...     jnp.array([0.0, 0.0]),
    ...     jnp.array([[2.0], [4.0]]),
    ... )
    Array([[1.],
           [1.]], dtype=float32)
    """
    if perturb_singular:
        raise BadArgument("singular systems are not perturbed", "perturb_singular=False", "True")
    low, middle, up, right = [
        as_value(x, "an operand of tridiagonal_solve") for x in (dl, d, du, b)
    ]
    if not (low.shape == middle.shape == up.shape == right.shape[:-1]) or middle.ndim < 1:
        found = ", ".join([str(x.type) for x in (low, middle, up, right)])
        raise IllTyped("the diagonals and b do not fit", "(..., n) and (..., n, k)", found)
    rows = [_first(x[..., None]) for x in (low, middle, up)]
    y = _first(right)
    one = el.add(el.mul(rows[1][0], 0), 1)
    zero = el.mul(y[0], 0)

    def down(carry: Pair, row: tuple[Array, ...]) -> tuple[Pair, Pair]:
        above, value = carry
        a, b, c, r = row
        divisor = el.sub(b, el.mul(a, above))
        ratio = el.div(c, divisor)
        value = el.div(el.sub(r, el.mul(_wide(a, r), value)), _wide(divisor, r))
        return (ratio, value), (ratio, value)

    first = el.mul(one, 0)
    eliminated = scan(down, (first, zero), (*rows, y))[1]

    def back(below: Array, row: Pair) -> Pair:
        ratio, value = row
        found = el.sub(value, el.mul(_wide(ratio, value), below))
        return found, found

    rows_first = scan(back, zero, eliminated, reverse=True)[1]
    n = rows_first.ndim
    return rows_first.transpose((*range(1, n - 1), 0, n - 1))


def _first(x: Array) -> Array:
    """Move the axis of rows, the last but one, to the front."""
    n = x.ndim
    return x.transpose((n - 2, *range(n - 2), n - 1))


def _wide(x: Array, like: Array) -> Array:
    return broadcast_to(x, like.shape)


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
