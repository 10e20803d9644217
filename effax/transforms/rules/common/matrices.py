"""Matrix algebra in rules, over the last two axes of atoms; leading axes are a batch."""

from __future__ import annotations

import math

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.dtypes import INT32, is_complex
from effax.ir.indexing import Dim, Indexer, Pick, Span
from effax.ir.prims import (
    BroadcastInDim,
    DotGeneral,
    Gather,
    Iota,
    Op,
    ReduceSum,
    Transpose,
    TriangularSolve,
)
from effax.ir.syntax import Atom
from effax.ir.types import Shape
from effax.transforms.rules.common.pointwise import const, scaled, where


def swapped(b: Builder, x: Atom) -> Atom:
    """Return the transpose."""
    n = len(x.type.shape)
    return b(Transpose((*range(n - 2), n - 1, n - 2)), x)


def conj(b: Builder, x: Atom) -> Atom:
    """Return the complex conjugate, or ``x`` itself if it is real."""
    return b(p.Conj(), x) if is_complex(x.type.dtype) else x


def adjoint(b: Builder, x: Atom) -> Atom:
    """Return the conjugate transpose."""
    return conj(b, swapped(b, x))


def matmul(b: Builder, x: Atom, y: Atom) -> Atom:
    """Return the matrix product."""
    n = len(x.type.shape)
    batch = tuple(range(n - 2))
    return b(DotGeneral((((n - 1,), (n - 2,)), (batch, batch)), None, "highest"), x, y)


def solved(
    b: Builder, a: Atom, y: Atom, lower: bool, op: Op = Op.PLAIN, unit_diagonal: bool = False
) -> Atom:
    """Return the x with op(a)·x = y for a triangular a."""
    return b(TriangularSolve(lower, op, unit_diagonal), a, y)


def solved_right(b: Builder, y: Atom, a: Atom, lower: bool, unit: bool = False) -> Atom:
    """Return the x with x·a = y for a triangular a: the transpose of aᵀ·xᵀ = yᵀ."""
    return swapped(b, solved(b, a, swapped(b, y), lower, Op.TRANSPOSE, unit))


def _row_and_column(b: Builder, shape: Shape) -> tuple[Atom, Atom]:
    n = len(shape)
    rows, columns = (b(Iota(INT32, shape, i)) for i in (n - 2, n - 1))
    return rows, columns


def below(b: Builder, x: Atom, diagonal: bool = True) -> Atom:
    """Return the lower triangle, zeros elsewhere."""
    rows, columns = _row_and_column(b, x.type.shape)
    inside = b(p.Ge() if diagonal else p.Gt(), rows, columns)
    return where(b, inside, x, const(0, x))


def above(b: Builder, x: Atom, diagonal: bool = True) -> Atom:
    """Return the upper triangle, zeros elsewhere."""
    rows, columns = _row_and_column(b, x.type.shape)
    inside = b(p.Le() if diagonal else p.Lt(), rows, columns)
    return where(b, inside, x, const(0, x))


def diagonal(b: Builder, x: Atom) -> Atom:
    """Return the diagonal of square matrices."""
    n = len(x.type.shape)
    on_diagonal = b(p.Eq(), *_row_and_column(b, x.type.shape))
    return b(ReduceSum((n - 1,)), where(b, on_diagonal, x, const(0, x)))


def diagonal_matrix(b: Builder, d: Atom) -> Atom:
    """Return square matrices with these diagonals."""
    rows = across_rows(b, d)
    return where(b, b(p.Eq(), *_row_and_column(b, rows.type.shape)), rows, const(0, d))


def across_rows(b: Builder, d: Atom, n: int | None = None) -> Atom:
    """Return matrices whose ``n`` rows are all ``d``."""
    *batch, k = d.type.shape
    axes = (*range(len(batch)), len(batch) + 1)
    return b(BroadcastInDim((*batch, k if n is None else n, k), axes), d)


def across_columns(b: Builder, d: Atom, n: int | None = None) -> Atom:
    """Return matrices whose ``n`` columns are all ``d``."""
    *batch, k = d.type.shape
    axes = tuple(range(len(batch) + 1))
    return b(BroadcastInDim((*batch, k, k if n is None else n), axes), d)


def rows(b: Builder, x: Atom, order: Atom) -> Atom:
    """Return each matrix with its rows in this order."""
    shape = x.type.shape
    n = len(shape)
    lead = order.type.shape
    picks = [
        order if i == n - 2 else b(BroadcastInDim(lead, (i,)), b(Iota(INT32, (shape[i],), 0)))
        for i in range(n - 1)
    ]
    dims: list[Dim] = [Pick(None) for _ in picks]
    return b(Gather(Indexer((*dims, Span(0, shape[-1])))), x, *picks)


def inverse_order(b: Builder, order: Atom) -> Atom:
    """Return the inverse permutation: the position of each number in ``order``."""
    shape = (*order.type.shape, order.type.shape[-1])
    numbers, positions = _row_and_column(b, shape)
    here = b(p.Eq(), across_rows(b, order), numbers)
    return b(ReduceSum((len(shape) - 1,)), where(b, here, positions, const(0, positions)))


def real(b: Builder, x: Atom) -> Atom:
    """Return the real part."""
    return b(p.Real(), x) if is_complex(x.type.dtype) else x


def like(b: Builder, x: Atom, other: Atom) -> Atom:
    """Return real numbers in the dtype of ``other``."""
    if x.type.dtype == other.type.dtype:
        return x
    return b(p.ConvertElementType(other.type.dtype), x)


def hermitian(b: Builder, x: Atom) -> Atom:
    """Return the Hermitian matrix with the lower triangle of ``x`` and a real diagonal."""
    strict = below(b, x, diagonal=False)
    middle = diagonal_matrix(b, like(b, real(b, diagonal(b, x)), x))
    return b(p.Add(), b(p.Add(), strict, adjoint(b, strict)), middle)


def inverse_differences(b: Builder, w: Atom) -> Atom:
    """Return ``1/(w_j - w_i)`` at (i, j): 0 on the diagonal, and nan where others are equal."""
    return _inverse(b, b(p.Sub(), across_rows(b, w), across_columns(b, w)))


def inverse_sums(b: Builder, w: Atom) -> Atom:
    """Return ``1/(w_j + w_i)`` at (i, j): 0 on the diagonal, and nan where others are both 0."""
    return _inverse(b, b(p.Add(), across_rows(b, w), across_columns(b, w)))


def _inverse(b: Builder, x: Atom) -> Atom:
    on_diagonal = b(p.Eq(), *_row_and_column(b, x.type.shape))
    return where(b, on_diagonal, const(0, x), inverse_or_nan(b, x))


def inverse_or_nan(b: Builder, x: Atom) -> Atom:
    """Return ``1/x``, and nan where ``x`` is 0."""
    is_zero = b(p.Eq(), x, const(0, x))
    safe = where(b, is_zero, const(1, x), x)
    return where(b, is_zero, const(math.nan, x), b(p.Div(), const(1, x), safe))


def leading_places(b: Builder, v: Atom) -> Atom:
    """Return whether an element is its column's leading component; see ``leading_phases``."""
    shape = v.type.shape
    axis = len(shape) - 2
    size = b(p.Abs(), v)
    weights = scaled(b, b(Iota(size.type.dtype, shape, axis)), -1 / (8 * shape[axis]))
    weighted = b(p.Add(), size, b(p.Mul(), size, weights))
    places = across_rows(b, b(p.Argmax(axis, INT32), weighted), shape[axis])
    return b(p.Eq(), b(Iota(INT32, shape, axis)), places)


def leading(b: Builder, x: Atom, places: Atom) -> Atom:
    """Return the element of each column at its place."""
    return b(ReduceSum((len(x.type.shape) - 2,)), where(b, places, x, const(0, x)))


def resized(b: Builder, x: Atom, rows: int, columns: int) -> Atom:
    """Return matrices of this size: the first rows and columns of ``x``, and zeros."""
    *batch, m, n = x.type.shape
    kept = b(p.Slice((0,) * (len(batch) + 2), (*batch, min(m, rows), min(n, columns))), x)
    still = [(0, 0, 0)] * len(batch)
    more = [(0, max(rows - m, 0), 0), (0, max(columns - n, 0), 0)]
    return b(p.Pad((*still, *more)), kept, const(0, x))
