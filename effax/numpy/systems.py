"""Systems of linear equations by LU, differentiated as equations.

A·x = y gives A·dx = dy - dA·x: one matrix product and solutions with the factors that are there,
where the derivative of the factors themselves would take several products and solutions more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from effax.array import Array
from effax.bind import bind, bind1
from effax.ir.build import Builder
from effax.ir.dtypes import INT32
from effax.ir.prims import linalg as prims
from effax.ir.prims.elementwise import StopGradient
from effax.ir.prims.solve import LinearSolve
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType, array_type
from effax.transforms.rules import matrices as m


def solved_by_lu(a: Array, y: Array) -> Array:
    """The x with a·x = y, of matrices in a dtype in which they are factorised, of one batch."""
    if not y.size:
        return y
    factors = cast("list[Array]", bind(prims.Lu(), bind1(StopGradient(), a)))
    lu, _, order = factors
    equation = _equation(a.type, y.type)
    return cast(Array, bind(equation, a, lu, order, y)[0])


@lru_cache(maxsize=1024)
def _equation(a: ArrayType, y: ArrayType) -> LinearSolve:
    """The equation whose constants are the matrices, their factors and the order of rows."""
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
