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
from effax.lax.reduce import argmax, dot_general
from effax.lax.whiles import fori_loop

__all__ = ["hessenberg", "householder_product", "ormqr", "tridiagonal"]


def matmul(x: Array, y: Array) -> Array:
    """Return the products of matrices in full precision."""
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
    moved = matmul(v, matmul(_adjoint(v), x))
    return el.sub(x, el.mul(broadcast_to(tau, x.shape), moved))


def _reflector(column: Array, rows: Array, k: Array) -> tuple[Array, Array, Array]:
    """Return the reflection that takes a column to its norm at row k, and zeros below.

    Returns:
        The vector, 1 at row k and 0 above; its factor; and the new element of row k.
    """
    real_part = el.real if is_complex(column.dtype) else _same
    zero = el.mul(column, 0)
    head = el.select(el.eq(rows, k), column, zero).sum(-2, keepdims=True)
    tail = el.select(el.gt(rows, k), column, zero)
    rest = real_part(el.mul(tail, _conj(tail))).sum(-2, keepdims=True)
    real = real_part(head)
    flat = el.eq(rest, 0)
    if is_complex(column.dtype):
        flat = el.bitwise_and(flat, el.eq(el.imag(head), 0))
    # A square root of 0 has no derivative.
    square = el.add(rest, el.square(el.abs(head)))
    size = el.sqrt(el.select(flat, el.add(el.mul(rest, 0), 1), square))
    beta = el.select(el.ge(real, 0), el.neg(size), size)
    tau = el.div(el.sub(_like(beta, head), head), _like(beta, head))
    tau = el.select(flat, el.mul(tau, 0), tau)
    divisor = el.sub(head, _like(beta, head))
    divisor = el.select(flat, el.add(el.mul(divisor, 0), 1), divisor)
    v = el.div(tail, broadcast_to(divisor, tail.shape))
    unit = el.select(el.eq(rows, k), el.add(zero, 1), v)
    return unit, tau, el.select(flat, head, _like(beta, head))


def _same(x: Array) -> Array:
    return x


def _packed(changed: Array, old: Array, unit: Array, place: tuple[Array, Array]) -> Array:
    """Return ``changed`` with the vector below row k of column c, and the old ones before."""
    k, c = place
    rows, columns = (_places(old.shape, old.ndim - i) for i in (2, 1))
    here = el.bitwise_and(el.eq(columns, c), el.gt(rows, k))
    packed = el.select(here, broadcast_to(unit, old.shape), changed)
    # Vectors of earlier columns are below the diagonal that lies as far from k as from c.
    behind = el.gt(el.sub(rows, columns), el.sub(k, c))
    return el.select(el.bitwise_and(el.lt(columns, c), behind), old, packed)


def _factors_of_zero(x: Array, count: int) -> Array:
    *batch, _, _ = x.shape
    return el.mul(broadcast_to(as_value(0.0).astype(x.dtype), (*batch, count)), 1)


def reflections(x: Array) -> tuple[Array, Array]:
    """Return R with the vectors of reflections below its diagonal, and their factors."""
    *batch, m, n = x.shape
    rows = _places((*batch, m, 1), len(batch))

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, taus = state
        k = el.convert_element_type(k, INT32)
        unit, tau, _ = _reflector(_column(a, k), rows, k)
        # The reflections' adjoints take a to R.
        packed = _packed(_applied(a, unit, _conj(tau)), a, unit, (k, k))
        return packed, taus.at[..., k].set(tau[..., 0, 0])

    return fori_loop(0, min(m, n), step, (x, _factors_of_zero(x, min(m, n))))


def pivots_of_columns(x: Array) -> Array:
    """Return the order of columns in which each is the longest outside of those before it.

    Source: Businger and Golub 1965, Linear least squares solutions by Householder transformations.
    """
    *batch, m, n = x.shape
    rows, places = _places((*batch, m, 1), len(batch)), _places((*batch, n), len(batch))

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, order = state
        k = el.convert_element_type(k, INT32)
        open_ = el.ge(broadcast_to(rows, a.shape), k)
        size = el.square(el.abs(el.select(open_, a, el.mul(a, 0)))).sum(-2)
        size = el.select(el.ge(places, k), size, el.sub(el.mul(size, 0), 1))
        best = el.convert_element_type(argmax(size, size.ndim - 1, INT32), INT32)[..., None]
        source = el.select(el.eq(places, k), broadcast_to(best, places.shape), places)
        there = el.eq(places, broadcast_to(best, places.shape))
        source = el.select(there, broadcast_to(k, places.shape), source)
        a = taken(a, broadcast_to(source[..., None, :], a.shape))
        order = taken(order, source)
        unit, tau, _ = _reflector(_column(a, k), rows, k)
        return _applied(a, unit, _conj(tau)), order

    return fori_loop(0, min(m, n), step, (x, places))[1]


def taken(x: Array, order: Array) -> Array:
    """Return the elements at these places of the last axis."""
    axes = [_places(x.shape, i) for i in range(x.ndim - 1)]
    return x[(*axes, order)]


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Return the Hessenberg form of square matrices, and the reflections of its basis.

    The form has zeros below the diagonal under the main one. In their place are the vectors of
    reflections H with ``form = Q.H @ a @ Q``, where Q is their product.

    Args:
        a: matrices, of shape (..., n, n).

    Returns:
        The packed form, and the factors of the reflections, of shape (..., n - 1).

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = _square(a, "hessenberg")
    *batch, n, _ = x.shape
    rows = _places((*batch, n, 1), len(batch))

    def step(c: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        old, taus = state
        c = el.convert_element_type(c, INT32)
        k = el.add(c, 1)
        # Vectors of earlier columns are not part of the matrix.
        below = el.sub(_places(old.shape, old.ndim - 2), _places(old.shape, old.ndim - 1))
        earlier = el.bitwise_and(el.lt(_places(old.shape, old.ndim - 1), c), el.gt(below, 1))
        now = el.select(earlier, el.mul(old, 0), old)
        unit, tau, _ = _reflector(_column(now, c), rows, k)
        left = _applied(now, unit, _conj(tau))
        changed = _adjoint(_applied(_adjoint(left), unit, _conj(tau)))
        packed = _packed(changed, old, unit, (k, c))
        return packed, taus.at[..., c].set(tau[..., 0, 0])

    return fori_loop(0, max(n - 1, 0), step, (x, _factors_of_zero(x, max(n - 1, 0))))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return the tridiagonal form of Hermitian matrices, and the reflections of its basis.

    Args:
        a: matrices, of shape (..., n, n).
        lower: whether the lower triangle is read; else the upper one.

    Returns:
        The packed form, in the triangle that is read, as by ``hessenberg``; its diagonal, its
        neighbouring diagonal, both real; and the factors of the reflections.

    Raises:
        IllTyped: the matrices are not square.

    >>> lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 4.0]]))[1]
    Array([1., 4.], dtype=float32)
    """
    x = _square(a, "tridiagonal")
    flipped = x if lower else x[..., ::-1, ::-1]
    rows, columns = (_places(x.shape, x.ndim - i) for i in (2, 1))
    strict = el.select(el.gt(rows, columns), flipped, el.mul(flipped, 0))
    real = el.convert_element_type(el.real(flipped), x.dtype) if is_complex(x.dtype) else flipped
    middle = el.select(el.eq(rows, columns), real, el.mul(real, 0))
    packed, taus = hessenberg(el.add(el.add(strict, _adjoint(strict)), middle))
    part = el.real(packed) if is_complex(x.dtype) else packed
    d, e = (
        el.select(el.eq(el.sub(rows, columns), k), part, el.mul(part, 0)).sum(-1) for k in (0, 1)
    )
    e = e[..., 1:]
    packed = el.select(el.ge(rows, columns), packed, flipped)
    if lower:
        return packed, d, e, taus
    return packed[..., ::-1, ::-1], d[..., ::-1], e[..., ::-1], taus[..., ::-1]


def _square(a: ArrayLike, what: str) -> Array:
    x = as_value(a, f"the operand of {what}")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise IllTyped(f"{what} takes square matrices", found=str(x.type))
    return x


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
