"""Functions of matrices with derivatives where singular values coincide or are 0.

Singular vectors have no derivatives there, but these functions have: their rules use the vectors
in products that do not depend on the choice of the vectors.

Sources: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate (4.12); Stewart 1998, On the adjugate matrix; Noferini 2017, A
formula for the Fréchet derivative of a generalized matrix function.
"""

from __future__ import annotations

import builtins
import math
from typing import cast

from effax.arrays.array import Array
from effax.arrays.binding import ForwardOfFunction, bind, bind1, program_of
from effax.arrays.conversion import as_value
from effax.arrays.promotion import literal
from effax.arrays.shapes import broadcast_to, expand_dims, matrix_transpose
from effax.ir.dtypes import INT32, is_complex
from effax.ir.prims import CumProd, CustomJvp, Iota, Pad
from effax.ir.prims import linalg as prims
from effax.ir.state import cached
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType
from effax.numpy import ufuncs as uf
from effax.numpy.dtypes import finfo
from effax.numpy.products import matmul
from effax.numpy.reduce import max, prod, sum
from effax.numpy.systems import diagonal_entries, odd_exchanges
from effax.transforms.rules.custom.dense import call_with_jvp


def adjoint(x: Array) -> Array:
    """Return the conjugate transposes."""
    flipped = matrix_transpose(x)
    return uf.conj(flipped) if is_complex(x.dtype) else flipped


def _product(*xs: Array) -> Array:
    result = xs[0]
    for x in xs[1:]:
        result = matmul(result, x, precision="highest")
    return result


def _factors(a: Array) -> tuple[Array, Array, Array]:
    """Return the left vectors, the values and the right vectors, both as columns."""
    u, s, vh = cast("list[Array]", bind(prims.Svd(), a))
    return u, s, adjoint(vh)


def _by_row(s: Array) -> Array:
    return expand_dims(s, -1)


def _by_column(s: Array) -> Array:
    return expand_dims(s, -2)


def _parts(c: Array) -> tuple[Array, Array]:
    """Return the Hermitian and the skew-Hermitian part."""
    back = adjoint(c)
    return uf.multiply(uf.add(c, back), 0.5), uf.multiply(uf.subtract(c, back), 0.5)


def _outside(basis: Array, x: Array) -> Array:
    """Return the part of the columns that is orthogonal to the columns of the basis."""
    return uf.subtract(x, _product(basis, adjoint(basis), x))


def cutoff(a: Array, s: Array, rtol: Array | None, unit: float = 1.0) -> Array:
    """Return the bound up to which a singular value of ``a`` counts as 0."""
    least: Array | float = rtol if rtol is not None else unit * _size(a) * _epsilon(s)
    return uf.multiply(max(s, -1, keepdims=True, initial=0), expand_dims(as_value(least), -1))


def _size(a: Array) -> int:
    *_, rows, columns = a.shape
    return builtins.max(rows, columns)


def _epsilon(s: Array) -> float:
    return float(finfo(s.dtype).eps)


def pseudo_inverse(a: Array, rtol: Array | None) -> Array:
    """Return the inverse of ``a`` on the space of the singular values above the cutoff.

    Its derivative is that along matrices of the same number of such values.
    """
    if current_trace() is None or not a.size:
        return _inverse_of_kept(a, rtol)
    if rtol is None:
        return bind1(_pseudo_inverse(a.type), a)
    return bind1(_truncated_inverse(a.type, rtol.type), a, rtol)


def _kept(a: Array, s: Array, rtol: Array | None) -> tuple[Array, Array]:
    """Return whether values are above the cutoff, and the inverses of those that are, else 0."""
    kept = uf.greater(s, cutoff(a, s, rtol, 10.0))
    return kept, uf.masked(kept, uf.true_divide(1, uf.masked(kept, s, 1)))


def _inverse_of_kept(a: Array, rtol: Array | None) -> Array:
    u, s, v = _factors(a)
    _, inverse = _kept(a, s, rtol)
    return _product(uf.multiply(v, _by_column(inverse)), adjoint(u))


@cached(maxsize=1024)
def _pseudo_inverse(type_: ArrayType) -> CustomJvp:
    call = program_of(lambda a: [_inverse_of_kept(a, None)], "pinv", type_)
    return CustomJvp(call, ForwardOfFunction(_pseudo_inverse_jvp, (type_,), "pinv"), 0, "pinv")


def _pseudo_inverse_jvp(a: Array, da: Array) -> list[Array]:
    """Return a⁺ and -a⁺·da·a⁺ + a⁺·a⁺ᴴ·daᴴ·(I - a·a⁺) + (I - a⁺·a)·daᴴ·a⁺ᴴ·a⁺.

    The rule calls the function itself, so that derivatives of every order have the rule.
    """
    b = bind1(_pseudo_inverse(a.type), a)
    bh, dah = adjoint(b), adjoint(da)
    rows, columns = _by_smaller(b, bh, dah), _by_smaller(dah, bh, b)
    rows = uf.subtract(rows, _by_smaller(rows, a, b))
    columns = uf.subtract(columns, _by_smaller(b, a, columns))
    return [b, uf.subtract(uf.add(rows, columns), _by_smaller(b, da, b))]


def _by_smaller(x: Array, y: Array, z: Array) -> Array:
    """Return x·y·z of shapes (n, m), (m, n), (n, m) by the smaller of x·y and y·z."""
    return _product(x, y, z) if x.shape[-2] <= x.shape[-1] else _product(x, _product(y, z))


@cached(maxsize=1024)
def _truncated_inverse(type_: ArrayType, rtol: ArrayType) -> CustomJvp:
    """Return the call with any cutoff, below which there may be values that are not small."""
    call = program_of(lambda a, rtol: [_inverse_of_kept(a, rtol)], "pinv", type_, rtol)

    def rule(a: Array, rtol: Array, da: Array, _: Array) -> list[Array]:
        """Return V·g·Uᴴ and its tangent V·D·Uᴴ, where g = 1/s or 0.

        C = Uᴴ·da·V. D_ij is -g_i·g_j·C_ij between values that are kept, and
        (conj(C_ji)·s + C_ij·t)/(s·(s² - t²)) between s, which is kept, and t, which is not.
        """
        u, s, v = _factors(a)
        kept, g = _kept(a, s, rtol)
        c = _product(adjoint(u), da, v)
        inside = uf.negative(uf.multiply(uf.multiply(_by_row(g), c), _by_column(g)))
        big, small = (f(_by_row(s), _by_column(s)) for f in (uf.maximum, uf.minimum))
        one = uf.bitwise_xor(_by_row(kept), _by_column(kept))
        gap = uf.multiply(big, uf.subtract(uf.square(big), uf.square(small)))
        mixed = uf.add(uf.multiply(adjoint(c), big), uf.multiply(c, small))
        inside = uf.where(one, uf.true_divide(mixed, uf.masked(one, gap, 1)), inside)
        dah, square = adjoint(da), _by_column(uf.square(g))
        rows = adjoint(_outside(u, _product(da, uf.multiply(v, square))))
        columns = _outside(v, _product(dah, uf.multiply(u, square)))
        tangent = uf.add(
            _product(v, uf.add(_product(inside, adjoint(u)), rows)), _product(columns, adjoint(u))
        )
        return [_product(uf.multiply(v, _by_column(g)), adjoint(u)), tangent]

    return call_with_jvp(call, program_of(rule, "pinv", type_, rtol, type_, rtol), "pinv")


def determinant(a: Array) -> Array:
    """Return the determinant, by LU; its derivative is d det(a) = tr(adj(a)·da), for every rank."""
    if current_trace() is None or not a.size:
        return _determinant_by_lu(a)
    return bind1(_determinant(a.type), a)


def _determinant_by_lu(a: Array) -> Array:
    lu, pivots, _ = cast("list[Array]", bind(prims.Lu(), a))
    product = prod(diagonal_entries(lu), -1)
    return uf.where(odd_exchanges(pivots), uf.negative(product), product)


@cached(maxsize=1024)
def _determinant(type_: ArrayType) -> CustomJvp:
    def rule(a: Array, da: Array) -> list[Array]:
        cofactors = matrix_transpose(bind1(_adjugate(type_), a))
        return [_determinant_by_lu(a), sum(uf.multiply(cofactors, da), (-2, -1))]

    call = program_of(lambda a: [_determinant_by_lu(a)], "det", type_)
    return call_with_jvp(call, program_of(rule, "det", type_, type_), "det")


@cached(maxsize=1024)
def _adjugate(type_: ArrayType) -> CustomJvp:
    """Return the call of adj(U·S·Vᴴ) = det(U·Vᴴ)·V·adj(S)·Uᴴ, which divides by no value."""

    def applied(inner: Array, u: Array, v: Array) -> Array:
        unit = uf.sign(_determinant_by_lu(_product(u, adjoint(v))))
        return uf.multiply(_by_row(_by_row(unit)), _product(v, inner, adjoint(u)))

    def function(a: Array) -> list[Array]:
        u, s, v = _factors(a)
        return [applied(_diagonal_matrix(_products_of_others(s), a), u, v)]

    def rule(a: Array, da: Array) -> list[Array]:
        """Return det(U·Vᴴ)·V·D·Uᴴ for D = adj(S) and its tangent.

        The latter is Σ_k q_ik·c_kk at (i, i), and -q_ij·c_ij at (i, j), where c = Uᴴ·da·V and q_ij
        is the product of the values other than s_i and s_j.
        """
        u, s, v = _factors(a)
        c = _product(adjoint(u), da, v)
        apart = uf.invert(_on_diagonal(a))
        others = _products_of_others(uf.masked(apart, broadcast_to(_by_column(s), a.shape), 1))
        pairs = uf.masked(apart, others)
        middle = sum(uf.multiply(pairs, _by_column(diagonal_entries(c))), -1)
        inner = uf.subtract(_diagonal_matrix(middle, a), uf.multiply(pairs, c))
        return [
            applied(_diagonal_matrix(_products_of_others(s), a), u, v),
            applied(inner, u, v),
        ]

    call = program_of(function, "adj", type_)
    return call_with_jvp(call, program_of(rule, "adj", type_, type_), "adj")


def _on_diagonal(x: Array) -> Array:
    rows, columns = (bind1(Iota(INT32, x.shape, x.ndim - k)) for k in (2, 1))
    return uf.equal(rows, columns)


def _diagonal_matrix(d: Array, like: Array) -> Array:
    entries = broadcast_to(_by_column(uf.astype(d, like.dtype)), like.shape)
    return uf.masked(_on_diagonal(like), entries)


def _products_of_others(s: Array) -> Array:
    """Return, for each element of the last axis, the product of the others, without a division."""
    last = s.ndim - 1
    one = literal(1.0, s.type.update(shape=()))
    before, after = (
        bind1(Pad((*[(0, 0, 0)] * last, edge)), x, one)
        for edge, x in (
            ((1, -1, 0), bind1(CumProd(last), s)),
            ((-1, 1, 0), bind1(CumProd(last, reverse=True), s)),
        )
    )
    return uf.multiply(before, after)


def nuclear_norm(a: Array) -> Array:
    """Return the sum of the singular values; d Σs = Re <U·Vᴴ, da>."""
    if current_trace() is None or not a.size:
        return _sum_of_values(a)
    return bind1(_nuclear_norm(a.type), a)


def _sum_of_values(a: Array) -> Array:
    return sum(cast("list[Array]", bind(prims.Svd(vectors=False), a))[0], -1)


@cached(maxsize=1024)
def _nuclear_norm(type_: ArrayType) -> CustomJvp:
    def rule(a: Array, da: Array) -> list[Array]:
        along = uf.multiply(uf.conj(bind1(_polar(type_), a)), da)
        return [_sum_of_values(a), sum(uf.real(along), (-2, -1))]

    call = program_of(lambda a: [_sum_of_values(a)], "nuclear_norm", type_)
    return call_with_jvp(call, program_of(rule, "nuclear_norm", type_, type_), "nuclear_norm")


@cached(maxsize=1024)
def _polar(type_: ArrayType) -> CustomJvp:
    """Return the call of U·Vᴴ, the factor of the polar decomposition."""

    def function(a: Array) -> list[Array]:
        u, _, v = _factors(a)
        return [_product(u, adjoint(v))]

    def rule(a: Array, da: Array) -> list[Array]:
        """Return U·Vᴴ and U·D·Vᴴ, D_ij = (c_ij - conj(c_ji))/(s_i + s_j), or nan; c = Uᴴ·da·V.

        For a rectangular matrix also (I - UUᴴ)·da·V·S⁻¹·Vᴴ or U·S⁻¹·Uᴴ·da·(I - VVᴴ).
        """
        u, s, v = _factors(a)
        c = _product(adjoint(u), da, v)
        sums = uf.add(_by_row(s), _by_column(s))
        turn = uf.multiply(uf.subtract(c, adjoint(c)), _inverse_or_nan(sums))
        inverse = _by_column(_inverse_or_nan(s))
        tangent = _product(u, turn, adjoint(v))
        rows, columns = a.shape[-2:]
        if rows > columns:
            moved = _outside(u, _product(da, uf.multiply(v, inverse)))
            tangent = uf.add(tangent, _product(moved, adjoint(v)))
        if columns > rows:
            moved = _outside(v, _product(adjoint(da), uf.multiply(u, inverse)))
            tangent = uf.add(tangent, _product(u, adjoint(moved)))
        return [_product(u, adjoint(v)), tangent]

    call = program_of(function, "polar", type_)
    return call_with_jvp(call, program_of(rule, "polar", type_, type_), "polar")


def _inverse_or_nan(x: Array) -> Array:
    zero = uf.equal(x, 0)
    return uf.where(zero, math.nan, uf.true_divide(1, uf.where(zero, 1, x)))
