"""Schur and Hessenberg forms, and functions of matrices by recurrences on triangular forms.

Sources: Golub and Van Loan, "Matrix Computations" (2013), 7.4 to 7.6 and 9.1; Björck and Hammarling
1983, A Schur method for the square root of a matrix; Parlett 1976, A recurrence among the elements
of functions of triangular matrices; Bartels and Stewart 1972, Solution of the matrix equation
AX + XB = C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, overload

import effax.numpy as jnp
from effax import lax
from effax.api.custom.decorators import custom_jvp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import complex_dtype, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import linalg as prims
from effax.lax import linalg as ll
from effax.numpy.factors import matrices
from effax.numpy.spectral import adjoint
from effax.scipy.linalg.factors import IGNORED

__all__ = ["funm", "hessenberg", "rsf2csf", "schur", "solve_sylvester", "sqrtm"]

PARAMETERS: Final = {
    "a": "array of shape (..., n, n).",
    "A": "array of shape (..., n, n).",
    "B": "array of shape (..., m, m).",
    "C": "array of shape (..., n, m).",
    "T": "real Schur form, of shape (..., n, n).",
    "Z": "its basis, of shape (..., n, n).",
    "output": "'real', or 'complex' for a triangular form of a real matrix.",
    "calc_q": "whether to return the basis q.",
    "overwrite_a": IGNORED,
    "check_finite": IGNORED,
    "func": "function of an array of eigenvalues, elementwise.",
    "disp": "whether to return the result alone; else an estimate of its error too.",
    "blocksize": IGNORED,
    "method": "'schur' or 'eigen'; both compute the same.",
    "tol": "the solution is nan where eigenvalues of A and -B are closer than this.",
}
OF_SHAPE: Final = "Array of the shape of ``A``."


def _matmul(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y, precision="highest")


def _complex(x: Array) -> Array:
    return x.astype(complex_dtype(x.dtype))


@shared_docs(PARAMETERS, "``(t, z)``.")
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Return the Schur form ``a = z @ t @ z.H``; see :func:`effax.lax.linalg.schur`.

    Raises:
        BadArgument: an unknown ``output``.
        IllTyped: the matrices are not square.
        NotApplicable: it is differentiated.

    >>> linalg.schur(jnp.array([[2.0, 1.0], [0.0, 3.0]]))[0]
    Array([[2., 1.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise BadArgument("unknown output of schur", "'real' or 'complex'", repr(output))
    x = matrices(a, "schur")
    t, z = ll.schur(_complex(x) if output == "complex" else x)
    return t, z


@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@shared_docs(PARAMETERS, "``h``, or ``(h, q)``.")
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Return the Hessenberg form ``a = q @ h @ q.H``: zeros below the first lower diagonal.

    Raises:
        IllTyped: the matrices are not square.

    >>> linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = matrices(a, "hessenberg")
    packed, taus = ll.hessenberg(x.astype(prims.work_dtype(x.dtype)))
    h = jnp.triu(packed, -1).astype(x.dtype)
    if not calc_q:
        return h
    n = x.shape[-1]
    q = jnp.broadcast_to(jnp.eye(n, dtype=packed.dtype), packed.shape)
    if n > 1:
        inner = ll.householder_product(packed[..., 1:, :-1], taus)
        q = q.at[..., 1:, 1:].set(inner)
    return h, q.astype(x.dtype)


@shared_docs(PARAMETERS, "``(t, z)``, complex, with the same ``z @ t @ z.H``.")
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:  # noqa: N803  SciPy's names
    """Return the complex Schur form of a real one: rotations make its blocks triangular.

    Raises:
        IllTyped: the matrices are not square, or differ in size.

    >>> t, z = linalg.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> linalg.rsf2csf(t, z)[0].diagonal().imag.round(3)
    Array([ 1., -1.], dtype=float32)
    """
    t, z = (_complex(matrices(x, "rsf2csf")) for x in (T, Z))
    if t.shape[-1] != z.shape[-1]:
        raise IllTyped("T and Z differ in size", str(t.type), str(z.type))
    dtype = jnp.result_type(t, z)
    t, z = (x.astype(dtype) for x in jnp.broadcast_arrays(t, z))
    n = t.shape[-1]
    places = jnp.arange(n)
    eps = float(jnp.finfo(jnp.real(t).dtype).eps)

    def rotated(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        t, z = state
        k = n - 2 - i
        pair = k + jnp.arange(2)
        block = t[..., pair[:, None], pair]
        under = block[..., 1, 0]
        size = jnp.abs(block[..., 0, 0]) + jnp.abs(block[..., 1, 1])
        split = jnp.abs(under) > eps * size
        mu = jnp.linalg.eigvals(block)[..., 0] - block[..., 1, 1]
        length = jnp.where(split, jnp.hypot(jnp.abs(mu), jnp.abs(under)), 1)
        c, s = jnp.where(split, mu / length, 1), jnp.where(split, under / length, 0)
        rows = jnp.stack([jnp.stack([jnp.conj(c), s], -1), jnp.stack([-s, c], -1)], -2)
        kept = places >= k
        upper = t[..., pair, :]
        t = t.at[..., pair, :].set(jnp.where(kept, _matmul(rows, upper), upper))
        columns = t[..., pair]
        kept = (places <= k + 1)[:, None]
        t = t.at[..., pair].set(jnp.where(kept, _matmul(columns, adjoint(rows)), columns))
        z = z.at[..., pair].set(_matmul(z[..., pair], adjoint(rows)))
        return t.at[..., k + 1, k].set(0), z

    return lax.fori_loop(0, max(n - 1, 0), rotated, (t, z))


def _triangular(a: Array) -> tuple[Array, Array]:
    t, z = ll.schur(_complex(a))
    return t, z


def _by_diagonals(start: Array, diagonal: Callable[[Array], Array]) -> Array:
    """Return the triangular matrix whose k-th diagonal follows from those below it."""
    n = start.shape[-1]
    offset = jnp.arange(n) - jnp.arange(n)[:, None]
    return lax.fori_loop(1, n, lambda k, f: jnp.where(offset == k, diagonal(f), f), start)


def _diagonal_of(t: Array) -> Array:
    return jnp.diagonal(t, axis1=-2, axis2=-1)


def _diagonal_matrix(d: Array) -> Array:
    return d[..., None] * jnp.eye(d.shape[-1], dtype=d.dtype)


@shared_docs(PARAMETERS, f"{OF_SHAPE[:-1]}, complex.")
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:  # noqa: N803  SciPy's name
    """Return the square roots of square matrices, of which no eigenvalue has a negative real part.

    Raises:
        IllTyped: the matrices are not square.

    >>> linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    x = matrices(A, "sqrtm")
    return _sqrtm(_complex(x.astype(prims.work_dtype(x.dtype)))).astype(complex_dtype(x.dtype))


@custom_jvp
def _sqrtm(a: Array) -> Array:
    t, z = _triangular(a)
    root = jnp.sqrt(_diagonal_of(t))
    sums = root[..., :, None] + root[..., None, :]
    vanish = sums == 0

    def diagonal(r: Array) -> Array:
        rest = t - _matmul(r, r)
        return jnp.where(vanish & (rest == 0), 0, rest / jnp.where(vanish & (rest == 0), 1, sums))

    root_of_t = _by_diagonals(_diagonal_matrix(root), diagonal)
    return _matmul(_matmul(z, root_of_t), adjoint(z))


@_sqrtm.defjvp
def _sqrtm_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # X·X = A:  dX·X + X·dX = dA
    root = _sqrtm(primals[0])
    return root, _sylvester(root, root, tangents[0])


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = True) -> Array: ...  # noqa: N803  SciPy's name
@overload
def funm(
    A: ArrayLike,  # noqa: N803  SciPy's name
    func: Callable[[Array], Array],
    disp: Literal[False],
) -> tuple[Array, Array]: ...
@shared_docs(PARAMETERS, "Complex array of the shape of ``A``, or the pair of it and its error.")
def funm(
    A: ArrayLike,  # noqa: N803  SciPy's name
    func: Callable[[Array], Array],
    disp: bool = True,
) -> Array | tuple[Array, Array]:
    """Return a function of square matrices, by Parlett's recurrence; eigenvalues are distinct.

    Raises:
        IllTyped: the matrices are not square.
        NotApplicable: it is differentiated.

    >>> linalg.funm(jnp.array([[1.0, 1.0], [0.0, 2.0]]), jnp.square).real
    Array([[1., 3.],
           [0., 4.]], dtype=float32)
    """
    x = matrices(A, "funm")
    t, z = _triangular(x.astype(prims.work_dtype(x.dtype)))
    d = _diagonal_of(t)
    gaps = d[..., None, :] - d[..., :, None]
    equal = gaps == 0

    def diagonal(f: Array) -> Array:
        rest = _matmul(t, f) - _matmul(f, t)
        return jnp.where(equal, rest, rest / jnp.where(equal, 1, gaps))

    start = _diagonal_matrix(jnp.asarray(func(d)).astype(t.dtype))
    found = _by_diagonals(start, diagonal)
    result = _matmul(_matmul(z, found), adjoint(z))
    if disp:
        return result
    strict = jnp.triu(jnp.ones(t.shape[-2:], bool), 1)
    size = jnp.abs(jnp.where(strict, gaps, jnp.abs(t[..., :1, :1]) + jnp.abs(gaps)))
    least = jnp.minimum(
        jnp.abs(t[..., 0, 0]), jnp.min(jnp.where(strict & ~equal, size, jnp.inf), (-2, -1))
    )
    unit = float(jnp.finfo(least.dtype).eps)
    least = jnp.where(least == 0, unit, least)
    norm = jnp.linalg.matrix_norm(jnp.triu(t, 1), ord=1)
    error = jnp.minimum(1, jnp.maximum(unit, unit / least * norm))
    return result, jnp.where(jnp.isinf(result).any((-2, -1)), jnp.inf, error)


@shared_docs(PARAMETERS, "Array of the shape of ``C``, batch axes broadcast.")
def solve_sylvester(
    A: ArrayLike,  # noqa: N803  SciPy's name
    B: ArrayLike,  # noqa: N803  SciPy's name
    C: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """Return the solution X of ``A @ X + X @ B = C``.

    Raises:
        BadArgument: an unknown ``method``.
        IllTyped: shapes do not fit.

    >>> linalg.solve_sylvester(jnp.eye(1), jnp.eye(1), 4 * jnp.eye(1))
    Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise BadArgument("unknown method of solve_sylvester", "'schur' or 'eigen'", repr(method))
    a, b = matrices(A, "solve_sylvester"), matrices(B, "solve_sylvester")
    c = matrices(C, "solve_sylvester", square=False)
    if c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        expected = f"C of shape (..., {a.shape[-1]}, {b.shape[-1]})"
        raise IllTyped("the operands of solve_sylvester do not fit", expected, str(c.type))
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    dtype = jnp.result_type(a, b, c)
    wide = complex_dtype(prims.work_dtype(dtype))
    a, b, c = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])).astype(wide) for x in (a, b, c))
    found = _sylvester(a, b, c, tol)
    return (found if is_complex(dtype) else jnp.real(found)).astype(dtype)


def _sylvester(a: Array, b: Array, c: Array, tol: float = 0.0) -> Array:
    """Solve the equation as a linear system, whose derivatives are solutions of such systems."""
    return lax.custom_linear_solve(
        lambda x: _matmul(a, x) + _matmul(x, b),
        c,
        lambda _, right: _solved(a, b, right, tol),
        lambda _, right: _solved(a.mT, b.mT, right, tol),
    )


def _solved(a: Array, b: Array, c: Array, tol: float) -> Array:
    """Solve the equation with triangular matrices, a column at a time."""
    (t, u), (s, v) = _triangular(a), _triangular(b)
    right = _matmul(_matmul(adjoint(u), c), v)
    unit = jnp.eye(a.shape[-1], dtype=a.dtype)
    n = b.shape[-1]

    def column(k: Array, y: Array) -> Array:
        # (T + s_kk)·y_k = f_k - Σ y_j·s_jk over j < k; the columns from k on are 0 yet.
        above = right[..., k] - jnp.matvec(y, s[..., :, k])
        shifted = t + s[..., k, k][..., None, None] * unit
        found = ll.triangular_solve(shifted, above, left_side=True)
        return y.at[..., k].set(found)

    y = lax.fori_loop(0, n, column, jnp.zeros_like(right))
    sums = jnp.abs(_diagonal_of(t)[..., :, None] + _diagonal_of(s)[..., None, :])
    near = (jnp.min(sums, (-2, -1), initial=jnp.inf) < tol)[..., None, None]
    return jnp.where(near, jnp.nan, _matmul(_matmul(u, y), adjoint(v)))
