"""Householder reflections: the packed form of QR factorizations, and products by them.

Source: Golub and Van Loan, "Matrix Computations" (2013), 5.1 and 5.2; the packed form is LAPACK's.
"""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to, matrix_transpose
from effax.ir.dtypes import INT32, is_complex
from effax.ir.errors import IllTyped
from effax.ir.prims import Iota
from effax.lax import elementwise as el
from effax.lax.reduce import dot_general
from effax.lax.whiles import fori_loop

__all__ = ["householder_product", "ormqr"]


def _matmul(x: Array, y: Array) -> Array:
    n = x.ndim
    batch = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (batch, batch)), precision="highest")


def _places(shape: tuple[int, ...], axis: int) -> Array:
    return bind1(Iota(INT32, shape, axis))


def _column(x: Array, k: Array) -> Array:
    """Return column k, of shape (..., m, 1)."""
    return x[..., k][..., None]


def _conj(x: Array) -> Array:
    return el.conj(x) if is_complex(x.dtype) else x


def _adjoint(x: Array) -> Array:
    return _conj(matrix_transpose(x))


def _applied(x: Array, v: Array, tau: Array) -> Array:
    """Return (I - tau·v·vᴴ)·x, for tau of shape (..., 1, 1)."""
    moved = _matmul(v, _matmul(_adjoint(v), x))
    return el.sub(x, el.mul(broadcast_to(tau, x.shape), moved))


def reflections(x: Array) -> tuple[Array, Array]:
    """Return R with the vectors of reflections below its diagonal, and their factors."""
    *batch, m, n = x.shape
    count = min(m, n)
    rows = _places((*batch, m, 1), len(batch))
    taus = el.mul(broadcast_to(as_value(0.0).astype(x.dtype), (*batch, count)), 1)

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, taus = state
        k = el.convert_element_type(k, INT32)
        column = _column(a, k)
        zero = el.mul(column, 0)
        head = a[..., k, k][..., None, None]
        tail = el.select(el.gt(rows, k), column, zero)
        square = el.real(el.mul(tail, _conj(tail))) if is_complex(a.dtype) else el.mul(tail, tail)
        rest = square.sum((-2, -1), keepdims=True)
        real = el.real(head) if is_complex(a.dtype) else head
        size = el.sqrt(el.add(rest, el.square(el.abs(head))))
        beta = el.select(el.ge(real, 0), el.neg(size), size)
        flat = el.eq(rest, 0)
        if is_complex(a.dtype):
            flat = el.bitwise_and(flat, el.eq(el.imag(head), 0))
        safe = el.select(flat, el.add(el.mul(beta, 0), 1), beta)
        tau = el.div(el.sub(_like(beta, head), head), _like(safe, head))
        tau = el.select(flat, el.mul(tau, 0), tau)
        divisor = el.sub(head, _like(beta, head))
        divisor = el.select(flat, el.add(el.mul(divisor, 0), 1), divisor)
        v = el.div(tail, broadcast_to(divisor, tail.shape))
        unit = el.select(el.eq(rows, k), el.add(zero, 1), v)
        # The reflections' adjoints take a to R.
        changed = _applied(a, unit, _conj(tau))
        columns = _places(a.shape, a.ndim - 1)
        below = el.gt(broadcast_to(rows, a.shape), k)
        here = el.bitwise_and(el.eq(columns, k), below)
        packed = el.select(here, broadcast_to(v, a.shape), changed)
        old = el.bitwise_and(el.lt(columns, k), el.gt(_places(a.shape, a.ndim - 2), columns))
        packed = el.select(old, a, packed)
        return packed, taus.at[..., k].set(tau[..., 0, 0])

    return fori_loop(0, count, step, (x, taus))


def _like(x: Array, y: Array) -> Array:
    return x if x.dtype == y.dtype else el.convert_element_type(x, y.dtype)


def _vector(a: Array, k: Array) -> Array:
    """Return the vector of reflection k from the packed form: 0, ..., 0, 1, a[k+1:, k]."""
    column = _column(a, k)
    rows = _places(column.shape, column.ndim - 2)
    zero = el.mul(column, 0)
    below = el.select(el.gt(rows, k), column, zero)
    return el.select(el.eq(rows, k), el.add(zero, 1), below)


def _product(a: Array, taus: Array, c: Array, adjoint: bool) -> Array:
    """Return Q·c, or Qᴴ·c."""
    count = taus.shape[-1]

    def step(i: Array, c: Array) -> Array:
        i = el.convert_element_type(i, INT32)
        k = i if adjoint else el.sub(count - 1, i)
        tau = taus[..., k][..., None, None]
        return _applied(c, _vector(a, k), _conj(tau) if adjoint else tau)

    return fori_loop(0, count, step, c)


def _checked(a: ArrayLike, taus: ArrayLike, what: str) -> tuple[Array, Array]:
    packed, factors = as_value(a, f"the operand of {what}"), as_value(taus, "the factors")
    fits = packed.ndim >= 2 and packed.shape[:-2] == factors.shape[:-1]
    if not fits or factors.shape[-1] > min(packed.shape[-2:]):
        found = f"{packed.type} and {factors.type}"
        raise IllTyped(f"{what} takes reflections", "(..., m, n) and (..., k), k <= m, n", found)
    return packed, factors


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the first columns of the product of reflections.

    Args:
        a: packed vectors of reflections, of shape (..., m, n) with m >= n, below the diagonal.
        taus: factors of the reflections, of shape (..., k).

    Returns:
        Array of shape (..., m, n).

    Raises:
        IllTyped: shapes do not fit.

    >>> lax.linalg.householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    packed, factors = _checked(a, taus, "householder_product")
    m, n = packed.shape[-2:]
    if m < n:
        raise IllTyped(
            "householder_product takes no more columns than rows", found=str(packed.type)
        )
    shape = packed.shape
    ones = el.eq(_places(shape, len(shape) - 2), _places(shape, len(shape) - 1))
    return _product(packed, factors, el.convert_element_type(ones, packed.dtype), adjoint=False)


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Return the product of ``c`` and Q, the square product of reflections.

    Args:
        a: packed vectors of reflections, of shape (..., r, n), below the diagonal.
        taus: factors of the reflections, of shape (..., k).
        c: matrices of shape (..., m, n), with r rows, or r columns on the right.
        left: whether Q is on the left of ``c``.
        transpose: whether the adjoint of Q is used.

    Returns:
        Array of the shape of ``c``.

    Raises:
        IllTyped: shapes do not fit.

    >>> lax.linalg.ormqr(jnp.array([[0.0], [1.0]]), jnp.array([1.0]), jnp.eye(2))
    Array([[ 0., -1.],
           [-1.,  0.]], dtype=float32)
    """
    packed, factors = _checked(a, taus, "ormqr")
    matrix = as_value(c, "the operand of ormqr")
    if matrix.ndim != packed.ndim or matrix.shape[-2 if left else -1] != packed.shape[-2]:
        expected = f"{packed.shape[-2]} {'rows' if left else 'columns'}"
        raise IllTyped("the matrix of ormqr does not fit", expected, str(matrix.type))
    if left:
        return _product(packed, factors, matrix, transpose)
    # c·Q = (Qᴴ·cᴴ)ᴴ
    return _adjoint(_product(packed, factors, _adjoint(matrix), not transpose))
