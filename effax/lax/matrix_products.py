"""Products of matrices with themselves, Cholesky factors of their changes, and polar factors."""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind, bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, matrix_transpose
from effax.ir.dtypes import INT32, is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota
from effax.ir.prims import linalg as prims
from effax.lax import elementwise as el
from effax.lax.householder import matmul
from effax.lax.reduce import reduce_max
from effax.lax.shape import concatenate
from effax.lax.whiles import fori_loop, while_loop

__all__ = ["cholesky_update", "qdwh", "symmetric_product"]


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Return ``alpha * a @ a.T + beta * c``.

    Args:
        a_matrix: matrices a, of shape (..., m, n).
        c_matrix: symmetric matrices c, of shape (..., m, m).
        alpha: factor of the product.
        beta: factor of c.
        symmetrize_output: whether the upper triangle of the result is that of the lower one; it
            is where c is symmetric.

    Returns:
        Array of the shape of ``c_matrix``.

    Raises:
        IllTyped: shapes do not fit.

    >>> lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = (as_value(x, "the operand of symmetric_product") for x in (a_matrix, c_matrix))
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise IllTyped(
            "the operands do not fit", "(..., m, n) and (..., m, m)", f"{a.type} and {c.type}"
        )
    product = el.mul(matmul(a, matrix_transpose(a)), alpha)
    result = el.add(product, el.mul(c, beta)) if beta else product
    if not symmetrize_output:
        return result
    rows, columns = (bind1(Iota(INT32, c.shape, c.ndim - i)) for i in (2, 1))
    return el.select(el.ge(rows, columns), result, matrix_transpose(result))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the upper Cholesky factor of ``r.T @ r + outer(w, w)``, by Givens rotations.

    Source: Golub and Van Loan, "Matrix Computations" (2013), 6.5.4.

    Args:
        r_matrix: upper triangular real matrices r, of shape (..., n, n).
        w_vector: vectors w, of shape (..., n).

    Returns:
        Array of the shape of ``r_matrix``.

    Raises:
        IllTyped: shapes do not fit, or numbers are complex.

    >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r, w = (as_value(x, "the operand of cholesky_update") for x in (r_matrix, w_vector))
    fits = r.ndim >= 2 and r.shape == (*w.shape, w.shape[-1]) and r.dtype == w.dtype
    if not fits or is_complex(r.dtype):
        expected = "(..., n, n) and (..., n), real"
        raise IllTyped("the operands do not fit", expected, f"{r.type} and {w.type}")

    def rotated(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        r, w = state
        row = r[..., k, :]
        x, y = row[..., k], w[..., k]
        size = el.max(el.abs(x), el.abs(y))
        vanishes = el.eq(y, 0)
        one = el.add(el.mul(x, 0), 1)
        safe = el.select(vanishes, one, size)
        norm = el.mul(safe, el.sqrt(el.add(el.square(el.div(x, safe)), el.square(el.div(y, safe)))))
        norm = el.select(vanishes, one, norm)
        c = el.select(vanishes, one, el.div(x, norm))[..., None]
        s = el.select(vanishes, el.mul(x, 0), el.div(y, norm))[..., None]
        c, s = (broadcast_to(z, w.shape) for z in (c, s))
        turned = el.add(el.mul(c, row), el.mul(s, w))
        return r.at[..., k, :].set(turned), el.sub(el.mul(c, w), el.mul(s, row))

    return fori_loop(0, w.shape[-1], rotated, (r, w))[0]


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Return the polar factorization ``x = u @ h``, by weighted Halley iterations.

    Source: Nakatsukasa, Bai and Gygi 2010, Optimizing Halley's iteration for computing the matrix
    polar decomposition.

    Args:
        x: matrix of shape (m, n), with m >= n, of full rank.
        is_hermitian: accepted as in JAX.
        max_iterations: bound of the iterations; 10 by default.
        eps: relative precision; by default that of the dtype.
        dynamic_shape: the shape of the part of ``x`` that is factorized; the rest counts as 0.

    Returns:
        The unitary factor u, the positive semidefinite factor h, the number of iterations, and
        whether they converged.

    Raises:
        BadArgument: more columns than rows.

    >>> lax.linalg.qdwh(2 * jnp.eye(2))[1]
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    given = as_value(x, "the operand of qdwh")
    if given.ndim != 2 or given.shape[0] < given.shape[1]:
        raise BadArgument("qdwh takes a matrix", "no more columns than rows", str(given.type))
    shape = given.shape
    m, n = shape if dynamic_shape is None else dynamic_shape
    inside = given[:m, :n]
    wide = el.convert_element_type(inside, prims.work_dtype(inside.dtype))
    u, count, converged = _unitary_factor(
        wide, 10 if max_iterations is None else max_iterations, eps
    )
    product = matmul(_adjoint(u), wide)
    h = el.mul(el.add(product, _adjoint(product)), 0.5)
    u, h = (el.convert_element_type(y, given.dtype) for y in (u, h))
    whole = el.mul(given, 0)
    return whole.at[:m, :n].set(u), whole[: shape[1]].at[:n, :n].set(h), count, converged


def _adjoint(x: Array) -> Array:
    return el.conj(matrix_transpose(x)) if is_complex(x.dtype) else matrix_transpose(x)


State = tuple[Array, Array, Array, Array]
"""An iterate, a lower bound of its singular values, the number of steps, and its last change."""


def _unitary_factor(x: Array, most: int, eps: float | None) -> tuple[Array, Array, Array]:
    real = el.abs(x)
    unit = float(np.finfo(real.dtype.name).eps) if eps is None else eps
    zero = el.mul(real.sum(), 0)
    if not x.shape[1]:
        return x, el.convert_element_type(zero, INT32), el.eq(zero, 0)
    # A bound of the 2-norm by those of rows and columns.
    bound = el.sqrt(el.mul(reduce_max(real.sum(0), (0,)), reduce_max(real.sum(1), (0,))))
    bound = el.select(el.eq(bound, 0), el.add(bound, 1), bound)
    start = el.div(x, broadcast_to(el.convert_element_type(bound, x.dtype), x.shape))
    limit = (4 * unit) ** (1 / 3)

    def far(state: State) -> Array:
        y, least, _, change = state
        size = el.sqrt(el.square(el.abs(y)).sum())
        moved = el.gt(change, el.mul(size, limit))
        return el.bitwise_or(moved, el.gt(el.abs(el.sub(least, 1)), 5 * unit))

    def unfinished(state: State) -> Array:
        return el.bitwise_and(far(state), el.lt(state[2], most))

    def step(state: State) -> State:
        y, least, count, _ = state
        y_new, least = _halley(y, least)
        change = el.sqrt(el.square(el.abs(el.sub(y_new, y))).sum())
        return y_new, least, el.add(count, 1), change

    start_state = (start, el.add(zero, unit), el.convert_element_type(zero, INT32), el.add(zero, 1))
    state = while_loop(unfinished, step, start_state)
    return state[0], state[2], el.bitwise_not(far(state))


def _halley(y: Array, least: Array) -> tuple[Array, Array]:
    """Return the next iterate, and the lower bound of its singular values.

    y·(a + b·yᴴy)·(1 + c·yᴴy)⁻¹ = (b/c)·y + (a - b/c)/√c·Q₁·Q₂ᴴ, with [√c·y; 1] = [Q₁; Q₂]·R.
    """
    square = el.square(least)
    d = el.cbrt(el.div(el.mul(el.sub(1.0, square), 4.0), el.square(square)))
    root = el.sqrt(el.add(d, 1.0))
    inner = el.div(el.mul(el.sub(2.0, square), 8.0), el.mul(square, root))
    a = el.add(root, el.mul(el.sqrt(el.add(el.sub(8.0, el.mul(d, 4.0)), inner)), 0.5))
    b = el.mul(el.square(el.sub(a, 1.0)), 0.25)
    c = el.sub(el.add(a, b), 1.0)
    m, n = y.shape
    places = (bind1(Iota(INT32, (n, n), i)) for i in (0, 1))
    unit = el.convert_element_type(el.eq(*places), y.dtype)
    q = bind(prims.Qr(), concatenate([_times(y, el.sqrt(c)), unit], 0))[0]
    weight = el.div(el.sub(a, el.div(b, c)), el.sqrt(c))
    turned = matmul(q[:m], _adjoint(q[m:]))
    new = el.add(_times(y, el.div(b, c)), _times(turned, weight))
    least = el.div(el.mul(least, el.add(el.mul(b, square), a)), el.add(el.mul(c, square), 1.0))
    return new, el.min(least, 1.0)


def _times(x: Array, factor: Array) -> Array:
    return el.mul(x, broadcast_to(el.convert_element_type(factor, x.dtype), x.shape))
