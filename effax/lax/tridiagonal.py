"""Solution of tridiagonal systems, by elimination with exchanges of neighbouring rows.

Source: Golub and Van Loan, "Matrix Computations" (2013), 4.3; the order of LAPACK's ``gtsv``.
"""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to
from effax.ir.dtypes import real_dtype
from effax.ir.errors import IllTyped
from effax.ir.prims.linalg import work_dtype
from effax.lax import elementwise as el
from effax.lax.control import scan
from effax.lax.reduce import reduce_max
from effax.lax.shape import concatenate

__all__ = ["tridiagonal_solve"]

Row = tuple[Array, Array, Array]
"""The diagonal and upper elements of a row that is not eliminated yet, and its right-hand side."""
Upper = tuple[Array, Array, Array, Array]
"""A row of the upper triangle: its three elements, and its right-hand side."""


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Return the solution of tridiagonal systems, by elimination with partial pivoting.

    Args:
        dl: lower diagonals, of shape (..., n); the first element is not used.
        d: diagonals, of shape (..., n).
        du: upper diagonals, of shape (..., n); the last element is not used.
        b: right-hand sides, of shape (..., n, k).
        perturb_singular: whether pivots that vanish are replaced by small ones, so that the
            solution is finite; else it is infinite or nan.

    Returns:
        Array of the shape of ``b``.

    Raises:
        IllTyped: shapes or dtypes do not fit.

    >>> lax.linalg.tridiagonal_solve(
    ...     *[jnp.array([0.0, 0.0]), jnp.array([2.0, 4.0])],
    ...     jnp.array([0.0, 0.0]),
    ...     jnp.array([[2.0], [4.0]]),
    ... )
    Array([[1.],
           [1.]], dtype=float32)
    """
    low, middle, up, right = [
        as_value(x, "an operand of tridiagonal_solve") for x in (dl, d, du, b)
    ]
    alike = low.shape == middle.shape == up.shape == right.shape[:-1]
    if not alike or middle.ndim < 1 or len({x.dtype for x in (low, middle, up, right)}) > 1:
        found = ", ".join([str(x.type) for x in (low, middle, up, right)])
        expected = "(..., n) and (..., n, k), of one dtype"
        raise IllTyped("the diagonals and b do not fit", expected, found)
    if 0 in right.shape:
        return right
    least = _least(low, middle, up) if perturb_singular else None
    # Elements outside of the matrix are not used: 0 keeps them out of the rows that are exchanged.
    lower, diagonal, upper = (_first(x[..., None]) for x in (low, middle, up))
    upper = upper.at[-1].set(0)
    rhs = _first(right)
    zero = el.mul(diagonal[0], 0)

    def down(row: Row, following: Upper) -> tuple[Row, Upper]:
        return _eliminated(row, following, least)

    start = (diagonal[0], upper[0], rhs[0])
    last, rows = scan(down, start, (lower[1:], diagonal[1:], upper[1:], rhs[1:]))
    final = _quotient(last[2], _pivot(last[0], least))

    def back(below: tuple[Array, Array], row: Upper) -> tuple[tuple[Array, Array], Array]:
        after, second = below
        pivot, first, far, value = row
        value = el.sub(value, el.mul(_wide(first, value), after))
        value = el.sub(value, el.mul(_wide(far, value), second))
        found = _quotient(value, pivot)
        return (found, after), found

    others = scan(back, (final, el.mul(final, _wide(zero, final))), rows, reverse=True)[1]
    whole = concatenate([others, final[None]], 0)
    return whole.transpose((*range(1, whole.ndim - 1), 0, whole.ndim - 1))


def _eliminated(row: Row, following: Upper, least: Array | None) -> tuple[Row, Upper]:
    """Eliminate the next row's first element by the larger of the two, which is the pivot."""
    (diagonal, upper, value), (low, middle, beyond, right) = row, following
    swap = el.gt(el.abs(low), el.abs(diagonal))
    pivot = _pivot(el.select(swap, low, diagonal), least)
    kept = (el.select(swap, middle, upper), el.select(swap, beyond, el.mul(beyond, 0)))
    kept_value = el.select(_wide(swap, value), right, value)
    ratio = el.div(el.select(swap, diagonal, low), pivot)
    rest = (el.select(swap, upper, middle), el.select(swap, el.mul(beyond, 0), beyond))
    new = [el.sub(x, el.mul(ratio, y)) for x, y in zip(rest, kept, strict=True)]
    other = el.select(_wide(swap, value), value, right)
    new_value = el.sub(other, el.mul(_wide(ratio, value), kept_value))
    return (new[0], new[1], new_value), (pivot, *kept, kept_value)


def _pivot(x: Array, least: Array | None) -> Array:
    """Return the pivot; ``least`` if it is smaller than that."""
    if least is None:
        return x
    small = el.lt(el.abs(x), least)
    return el.select(small, el.convert_element_type(least, x.dtype), x)


def _least(*diagonals: Array) -> Array:
    """Return the smallest pivot: the precision of the dtype times the largest element."""
    info = np.finfo(work_dtype(real_dtype(diagonals[0].dtype)).name)
    sizes = [reduce_max(el.abs(x), (x.ndim - 1,)) for x in diagonals]
    largest = el.max(el.max(sizes[0], sizes[1]), sizes[2])
    return el.max(el.mul(largest, float(info.eps)), float(info.tiny))[..., None]


def _quotient(x: Array, y: Array) -> Array:
    return el.div(x, _wide(y, x))


def _first(x: Array) -> Array:
    """Move the axis of rows, the last but one, to the front."""
    n = x.ndim
    return x.transpose((n - 2, *range(n - 2), n - 1))


def _wide(x: Array, like: Array) -> Array:
    return broadcast_to(x, like.shape)
