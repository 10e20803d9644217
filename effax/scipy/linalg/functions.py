"""Functions of matrices: the exponential, polar factors, and eigenvalues of tridiagonal ones.

Sources: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
"""

from __future__ import annotations

from typing import Final, Literal, overload

import effax.numpy as jnp
from effax import lax
from effax.api.autodiff import jvp
from effax.arrays.array import Array, ArrayLike
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import linalg as prims
from effax.numpy.factors import matrices
from effax.numpy.spectral import adjoint
from effax.scipy.linalg.factors import qr

__all__ = ["eigh_tridiagonal", "expm", "expm_frechet", "polar", "qr_multiply"]

# Coefficients of Padé's approximants of exp, and the norms up to which each is exact to rounding.
_PADE: Final[dict[int, tuple[float, ...]]] = {
    3: (120, 60, 12, 1),
    5: (30240, 15120, 3360, 420, 30, 1),
    7: (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1),
    13: (
        64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
        10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
    ),
}  # fmt: skip
_BOUNDS: Final = {4: {7: 3.925724783138660}, 8: {13: 5.371920351148152}}


def _matmul(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y, precision="highest")


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:  # noqa: N803  SciPy's name
    """Return the exponential of square matrices, by scaling and squaring.

    Args:
        A: array of shape (..., n, n).
        upper_triangular: accepted as in JAX; the result is the same.
        max_squarings: bound of squarings; the result is nan where more are needed.

    Returns:
        Array of the shape of ``A``.

    Raises:
        IllTyped: the matrices are not square.

    >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    given = matrices(A, "expm")
    x = given.astype(prims.work_dtype(given.dtype))
    real = jnp.real(x).dtype
    ((degree, bound),) = _BOUNDS[real.itemsize].items()
    norm = lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(x), -2), -1, initial=0))
    squarings = jnp.ceil(jnp.log2(jnp.maximum(norm / bound, 1)))
    valid = squarings <= max_squarings
    count = jnp.where(valid, squarings, 0)
    scale = jnp.exp2(-count).astype(real)[..., None, None]
    result = _pade(x * scale, _PADE[degree])

    def step(k: Array, result: Array) -> Array:
        more = (k < count)[..., None, None]
        return jnp.where(more, _matmul(result, result), result)

    result = lax.fori_loop(0, max_squarings, step, result)
    return jnp.where(valid[..., None, None], result, jnp.nan).astype(given.dtype)


def _pade(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Return (V - U)⁻¹·(V + U), where U and V are the odd and the even part of the numerator."""
    unit = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    square = _matmul(x, x)
    # Divided by the first coefficient, so that no number overflows.
    scaled = [c / coefficients[0] for c in coefficients]
    odd, even = scaled[-1] * unit, scaled[-2] * unit
    for a, b in zip(scaled[-3::-2], scaled[-4::-2], strict=True):
        odd, even = _matmul(square, odd) + a * unit, _matmul(square, even) + b * unit
    odd = _matmul(x, odd)
    return jnp.linalg.solve(even - odd, even + odd)


@overload
def expm_frechet(
    A: ArrayLike,  # noqa: N803  SciPy's name
    E: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str | None = None,
    compute_expm: Literal[True] = True,
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike,  # noqa: N803  SciPy's name
    E: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str | None = None,
    compute_expm: Literal[False],
) -> Array: ...
def expm_frechet(
    A: ArrayLike,  # noqa: N803  SciPy's name
    E: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str | None = None,
    compute_expm: bool = True,
) -> Array | tuple[Array, Array]:
    """Return the exponential of ``A`` and its derivative along ``E``.

    Args:
        A: array of shape (..., n, n).
        E: direction, of the same shape.
        method: accepted as in SciPy, without effect.
        compute_expm: whether to return the exponential as well.

    Returns:
        The pair, or the derivative alone.

    Raises:
        IllTyped: the matrices are not square, or of different shape.

    >>> linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    x, direction = matrices(A, "expm_frechet"), matrices(E, "expm_frechet")
    if x.shape != direction.shape:
        raise IllTyped("A and E differ in shape", str(x.shape), str(direction.shape))
    dtype = jnp.result_type(x, direction)
    value, moved = jvp(expm, (x.astype(dtype),), (direction.astype(dtype),))
    return (value, moved) if compute_expm else moved


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Return the polar factorization ``a = u @ p``, or ``a = p @ u`` on the left.

    Args:
        a: array of shape (..., m, n).
        side: "right" or "left", the side of p.
        method: "qdwh" or "svd"; both compute the same.
        eps: accepted as in JAX, without effect.
        max_iterations: accepted as in JAX, without effect.

    Returns:
        ``(u, p)``: orthonormal rows or columns, and a positive semidefinite matrix.

    Raises:
        BadArgument: an unknown side or method.
        IllTyped: ``a`` has fewer than 2 axes.

    >>> linalg.polar(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[1]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        expected = "side 'right' or 'left', method 'qdwh' or 'svd'"
        raise BadArgument("unknown side or method of polar", expected, f"{side!r}, {method!r}")
    x = matrices(a, "polar", square=False)
    w, s, vh = jnp.linalg.svd(x, full_matrices=False)
    unit = _matmul(w, vh)
    basis = adjoint(vh) if side == "right" else w
    return unit, _matmul(basis * s[..., None, :], adjoint(basis))


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
) -> Array: ...
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
) -> Array | tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: diagonal, of shape (n,).
        e: diagonal above it, of shape (n - 1,); its conjugate is below.
        eigvals_only: whether to return the eigenvalues alone.
        select: "a" for all, or "i" for a range of indices.
        select_range: first and last index of the range.
        tol: accepted as in SciPy, without effect.

    Returns:
        Eigenvalues in ascending order, and vectors as columns; the values alone.

    Raises:
        BadArgument: an unknown ``select``.
        IllTyped: the diagonals do not fit.

    >>> linalg.eigh_tridiagonal(jnp.array([1.0, 3.0]), jnp.array([0.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if select not in ("a", "i") or (select == "i" and select_range is None):
        raise BadArgument("unknown select", "'a', or 'i' with select_range", repr(select))
    main, above = jnp.asarray(d), jnp.asarray(e)
    if main.ndim != 1 or above.shape != (main.size - 1,):
        raise IllTyped(
            "the diagonals do not fit", "(n,) and (n - 1,)", f"{main.type}, {above.type}"
        )
    dense = (
        jnp.diag(main)
        + jnp.diag(above, 1)
        + jnp.diag(jnp.conj(above) if is_complex(above.dtype) else above, -1)
    )
    w, v = jnp.linalg.eigh(dense, symmetrize_input=False)
    if select == "i" and select_range is not None:
        first, last = map(int, select_range)
        w, v = w[first : last + 1], v[:, first : last + 1]
    return w if eigvals_only else (w, v)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Return the product of ``c`` and the factor Q of ``a``, and R.

    Args:
        a: array of shape (..., m, n).
        c: matrices, or vectors, which are multiplied.
        mode: "right" for ``c @ Q``, "left" for ``Q @ c``.
        pivoting: whether columns are exchanged, see :func:`qr`.
        conjugate: whether Q is conjugated.
        overwrite_a: accepted as in SciPy, without effect.
        overwrite_c: accepted as in SciPy, without effect.

    Returns:
        ``(product, R)``, and the order of columns with ``pivoting``.

    Raises:
        BadArgument: an unknown mode.
        IllTyped: shapes do not fit.

    >>> linalg.qr_multiply(jnp.eye(2), jnp.array([1.0, 2.0]))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if mode not in ("right", "left"):
        raise BadArgument("unknown mode of qr_multiply", "'right' or 'left'", repr(mode))
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = jnp.conj(q) if conjugate and is_complex(q.dtype) else q
    other = jnp.asarray(c)
    return (jnp.matmul(other, q) if mode == "right" else jnp.matmul(q, other)), *rest
