"""Matrices in rules: the last two axes of atoms; all axes before are a batch."""

from __future__ import annotations

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
from effax.transforms.rules.common.pointwise import const, where


def swapped(b: Builder, x: Atom) -> Atom:
    """The transpose."""
    n = len(x.type.shape)
    return b(Transpose((*range(n - 2), n - 1, n - 2)), x)


def conj(b: Builder, x: Atom) -> Atom:
    """The conjugate; of real numbers, themselves."""
    return b(p.Conj(), x) if is_complex(x.type.dtype) else x


def adjoint(b: Builder, x: Atom) -> Atom:
    """The conjugate transpose."""
    return conj(b, swapped(b, x))


def matmul(b: Builder, x: Atom, y: Atom) -> Atom:
    """The product of matrices."""
    n = len(x.type.shape)
    batch = tuple(range(n - 2))
    return b(DotGeneral((((n - 1,), (n - 2,)), (batch, batch)), None, "highest"), x, y)


def solved(
    b: Builder, a: Atom, y: Atom, lower: bool, op: Op = Op.PLAIN, unit_diagonal: bool = False
) -> Atom:
    """The x with op(a)·x = y for a triangular a."""
    return b(TriangularSolve(lower, op, unit_diagonal), a, y)


def solved_right(b: Builder, y: Atom, a: Atom, lower: bool, unit: bool = False) -> Atom:
    """The x with x·a = y for a triangular a."""
    return swapped(b, solved(b, a, swapped(b, y), lower, Op.TRANSPOSE, unit))


def _places(b: Builder, shape: Shape) -> tuple[Atom, Atom]:
    n = len(shape)
    rows, columns = (b(Iota(INT32, shape, i)) for i in (n - 2, n - 1))
    return rows, columns


def below(b: Builder, x: Atom, diagonal: bool = True) -> Atom:
    """The lower triangle, zeros elsewhere."""
    rows, columns = _places(b, x.type.shape)
    inside = b(p.Ge() if diagonal else p.Gt(), rows, columns)
    return where(b, inside, x, const(0, x))


def above(b: Builder, x: Atom, diagonal: bool = True) -> Atom:
    """The upper triangle, zeros elsewhere."""
    rows, columns = _places(b, x.type.shape)
    inside = b(p.Le() if diagonal else p.Lt(), rows, columns)
    return where(b, inside, x, const(0, x))


def diagonal(b: Builder, x: Atom) -> Atom:
    """The diagonal of square matrices."""
    n = len(x.type.shape)
    return b(ReduceSum((n - 1,)), where(b, b(p.Eq(), *_places(b, x.type.shape)), x, const(0, x)))


def diagonal_matrix(b: Builder, d: Atom) -> Atom:
    """Square matrices with these diagonals."""
    rows = across_rows(b, d)
    return where(b, b(p.Eq(), *_places(b, rows.type.shape)), rows, const(0, d))


def across_rows(b: Builder, d: Atom, n: int | None = None) -> Atom:
    """Matrices whose rows are all ``d``."""
    *batch, k = d.type.shape
    axes = (*range(len(batch)), len(batch) + 1)
    return b(BroadcastInDim((*batch, k if n is None else n, k), axes), d)


def across_columns(b: Builder, d: Atom, n: int | None = None) -> Atom:
    """Matrices whose columns are all ``d``."""
    *batch, k = d.type.shape
    axes = tuple(range(len(batch) + 1))
    return b(BroadcastInDim((*batch, k, k if n is None else n), axes), d)


def rows(b: Builder, x: Atom, order: Atom) -> Atom:
    """The rows in this order, of each matrix."""
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
    """The position of each number in an order: where it is alone equal to the number."""
    shape = (*order.type.shape, order.type.shape[-1])
    numbers, places = _places(b, shape)
    here = b(p.Eq(), across_rows(b, order), numbers)
    return b(ReduceSum((len(shape) - 1,)), where(b, here, places, const(0, places)))


def real(b: Builder, x: Atom) -> Atom:
    """The real part."""
    return b(p.Real(), x) if is_complex(x.type.dtype) else x


def like(b: Builder, x: Atom, other: Atom) -> Atom:
    """Real numbers in the dtype of ``other``."""
    if x.type.dtype == other.type.dtype:
        return x
    return b(p.ConvertElementType(other.type.dtype), x)


def hermitian(b: Builder, x: Atom) -> Atom:
    """The Hermitian matrix with this lower triangle; of the diagonal, the real part."""
    strict = below(b, x, diagonal=False)
    middle = diagonal_matrix(b, like(b, real(b, diagonal(b, x)), x))
    return b(p.Add(), b(p.Add(), strict, adjoint(b, strict)), middle)


def inverse_differences(b: Builder, w: Atom) -> Atom:
    """``1/(w_j - w_i)`` at (i, j), and 0 where they are equal, as on the diagonal."""
    apart = b(p.Sub(), across_rows(b, w), across_columns(b, w))
    equal = b(p.Eq(), apart, const(0, apart))
    safe = where(b, equal, const(1, apart), apart)
    return where(b, equal, const(0, apart), b(p.Div(), const(1, apart), safe))
