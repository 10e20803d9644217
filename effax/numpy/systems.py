"""Systems of linear equations, and determinants, by LU, differentiated implicitly.

From A·x = y follows A·dx = dy - dA·x: one matrix product and solutions with the same factors,
where the derivative of the factors would take several products and solutions more.
"""

from __future__ import annotations

from typing import cast

from effax.arrays.array import Array
from effax.arrays.binding import bind, bind1, program_of
from effax.arrays.creation import zeros_like
from effax.ir.build import Builder
from effax.ir.dtypes import INT32, is_complex
from effax.ir.indexing import Indexer, Pick, Span
from effax.ir.prims import CustomJvp, Gather, Iota, LinearSolve, StopGradient
from effax.ir.prims import linalg as prims
from effax.ir.state import cached
from effax.ir.syntax import Atom
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType, array_type
from effax.numpy import ufuncs as uf
from effax.numpy.reduce import prod, sum
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.custom.dense import call_with_jvp


def solved_by_lu(a: Array, y: Array) -> Array:
    """Return the x with a·x = y, for matrices in a dtype of factorizations and of one batch."""
    if not y.size:
        return y
    factors = cast("list[Array]", bind(prims.Lu(), bind1(StopGradient(), a)))
    lu, _, order = factors
    equation = _equation(a.type, y.type)
    return cast(Array, bind(equation, a, lu, order, y)[0])


def log_determinant(a: Array) -> tuple[Array, Array]:
    """Return the sign of the determinant and the logarithm of its magnitude, by LU."""
    if current_trace() is None or not a.size:
        sign, size, *_ = _by_factors(a)
    else:
        sign, size = cast("list[Array]", bind(_log_determinant(a.type), a))
    return sign, size


@cached(maxsize=1024)
def _log_determinant(type_: ArrayType) -> CustomJvp:
    """Return the call whose derivative is d log det(a) = tr(a⁻¹·da)."""

    def rule(a: Array, da: Array) -> list[Array]:
        sign, size, *factors = _by_factors(a)
        moved = cast(Array, bind(_equation(type_, type_), a, *factors, da)[0])
        trace = _trace(moved)
        if not is_complex(a.dtype):
            return [sign, size, zeros_like(sign), trace]
        turn = uf.multiply(sign, uf.multiply(1j, uf.imag(trace)))
        return [sign, size, turn, uf.real(trace)]

    call = program_of(lambda a: _by_factors(a)[:2], "slogdet", type_)
    return call_with_jvp(call, program_of(rule, "slogdet", type_, type_), "slogdet")


def _by_factors(a: Array) -> list[Array]:
    """Return the sign, the logarithm, the factors and the order of rows."""
    lu, pivots, order = cast("list[Array]", bind(prims.Lu(), a))
    middle = diagonal_entries(lu)
    sign = prod(uf.sign(middle), -1)
    sign = uf.where(odd_exchanges(pivots), uf.negative(sign), sign)
    return [sign, sum(uf.log(uf.absolute(middle)), -1), lu, order]


def diagonal_entries(x: Array) -> Array:
    """Return the diagonals of square matrices, without closing over positions."""
    *batch, n, _ = x.shape
    places = bind1(Iota(INT32, (n,), 0))
    whole = [Span(0, size) for size in batch]
    return bind1(Gather(Indexer((*whole, Pick(None), Pick(None)))), x, places, places)


def _trace(x: Array) -> Array:
    """Return the sum of the diagonal by a mask, whose transpose writes only the diagonal."""
    rows, columns = (bind1(Iota(INT32, x.shape, x.ndim - k)) for k in (2, 1))
    return sum(uf.where(uf.equal(rows, columns), x, 0), (-2, -1))


def odd_exchanges(pivots: Array) -> Array:
    """Return whether the number of exchanged rows is odd."""
    places = bind1(Iota(INT32, pivots.shape, pivots.ndim - 1))
    return uf.equal(uf.bitwise_and(sum(uf.astype(uf.not_equal(pivots, places), int), -1), 1), 1)


@cached(maxsize=1024)
def _equation(a: ArrayType, y: ArrayType) -> LinearSolve:
    """Return the equation whose constants are the matrices, their factors and the order of rows."""
    order = array_type(a.shape[:-1], INT32)
    programs = []
    for body in (_product, _solution, _product_transposed, _solution_transposed):
        b = Builder([a, a, order, y])
        programs.append(b.finish([body(b, *b.binders)]))
    matvec, solve, vecmat, transpose_solve = programs
    return LinearSolve(matvec, solve, vecmat, transpose_solve, 3)


def _product(b: Builder, a: Atom, lu: Atom, order: Atom, x: Atom) -> Atom:
    return m.matmul(b, a, x)


def _solution(b: Builder, a: Atom, lu: Atom, order: Atom, y: Atom) -> Atom:
    """a[order] = L·U, so U·x = L⁻¹·y[order]."""
    below = m.solved(b, lu, m.rows(b, y, order), lower=True, unit_diagonal=True)
    return m.solved(b, lu, below, lower=False)


def _product_transposed(b: Builder, a: Atom, lu: Atom, order: Atom, x: Atom) -> Atom:
    return m.matmul(b, m.swapped(b, a), x)


def _solution_transposed(b: Builder, a: Atom, lu: Atom, order: Atom, y: Atom) -> Atom:
    """aᵀ = Uᵀ·Lᵀ·P, where P puts rows in order, so x[order] = L⁻ᵀ·U⁻ᵀ·y."""
    above = m.solved(b, lu, y, lower=False, op=prims.Op.TRANSPOSE)
    moved = m.solved(b, lu, above, lower=True, op=prims.Op.TRANSPOSE, unit_diagonal=True)
    return m.rows(b, moved, m.inverse_order(b, order))
