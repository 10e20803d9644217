"""Rules of matrix factorizations: derivatives by matrix algebra, batching by their batch axes.

Vectors of equal eigenvalues or singular values are determined up to a rotation only, and jump under
a small change of the matrix: their derivatives are nan. No number would do: for equal eigenvalues
w, a derivative V·X of V yields (V·Vᴴ)' = V·(X + Xᴴ)·Vᴴ, which is 0, and a derivative of V·w·Vᴴ,
which is dA, with the part w·V·(X + Xᴴ)·Vᴴ. Equal values have the derivatives diag(Vᴴ·dA·V), with
which their symmetric functions have the right ones.

Sources: Giles 2008, An extended collection of matrix derivative results for forward and reverse
mode; Murray 2016, Differentiation of the Cholesky decomposition; Seeger et al. 2017,
Auto-differentiating linear algebra; Townsend 2016, Differentiating the singular value
decomposition; Walter and Lehmann 2010, Algorithmic differentiation of linear algebra functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.dtypes import INT32, is_complex
from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    Complex,
    ConvertElementType,
    Ge,
    Imag,
    Iota,
    ReduceSum,
    Reshape,
    Transpose,
)
from effax.ir.prims import linalg as p
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    JvpOut,
    Linear,
    RuleBuilder,
    RuleSet,
    Unsupported,
)
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.generic_rules import NONLINEAR, array_rules
from effax.transforms.rules.common.linear_operands import at, linear_operand, only
from effax.transforms.rules.common.pointwise import (
    add,
    const,
    div,
    mul,
    neg,
    scaled,
    sub,
)

_NO_SCHUR: Final = "its blocks on the diagonal change their size under a small change of the matrix"


def _batch(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Add the batch axis to the primitive's own batch axes."""
    args = [to_front(b, x, has, size) for x, has in zip(ins, batched, strict=True)]
    outs = b.emit(prim, args)
    return BatchOut(outs, [True] * len(outs))


def _solve_batch(
    b: RuleBuilder,
    prim: p.TriangularSolve,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    """Solve once if only the right-hand sides are batched: the batch elements become columns."""
    a, y = ins
    if batched[0]:
        return _batch(b, prim, ins, batched, size)
    _, *batch, n, k = y.type.shape
    d = len(batch)
    last = b(Transpose((*range(1, d + 3), 0)), y)
    columns = b(Reshape((*batch, n, k * size)), last)
    found = b(Reshape((*batch, n, k, size)), b(prim, a, columns))
    return BatchOut([b(Transpose((d + 2, *range(d + 2))), found)], [True])


def _cholesky_jvp(
    b: RuleBuilder, prim: p.Cholesky, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A = L·Lᴴ: dL = L·Φ(L⁻¹·dA·L⁻ᴴ) (Murray 2016; Giles 2008, 2.5.1).

    Φ keeps the strictly lower triangle and half of the diagonal.
    """
    (da,) = tangents
    assert da is not None
    low = b(prim, primals[0])
    left = m.solved(b, low, m.hermitian(b, da), lower=True)
    inner = m.adjoint(b, m.solved(b, low, m.adjoint(b, left), lower=True))
    half = m.diagonal_matrix(b, scaled(b, m.diagonal(b, inner), 0.5))
    return JvpOut([low], [m.matmul(b, low, sub(b, m.below(b, inner), half))])


def _solve_jvp(
    b: RuleBuilder,
    prim: p.TriangularSolve,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    # op(A)·X = B:  op(A)·dX = dB - op(dA)·X, with the triangle of dA that is read (Giles 2008)
    a, _ = primals
    da, db = tangents
    x = b(prim, *primals)
    right = db
    if da is not None:
        part = (m.below if prim.lower else m.above)(b, da, not prim.unit_diagonal)
        if prim.op is p.Op.TRANSPOSE:
            part = m.swapped(b, part)
        elif prim.op is p.Op.ADJOINT:
            part = m.adjoint(b, part)
        moved = m.matmul(b, part, x)
        right = neg(b, moved) if db is None else sub(b, db, moved)
    assert right is not None
    return JvpOut([x], [b(prim, a, right)])


def _solve_transpose(
    b: RuleBuilder,
    prim: p.TriangularSolve,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # <ct, op(A)⁻¹·b> = <op(A)⁻ᵀ·ct, b>
    position, _, (a,) = linear_operand(prim, ins)
    if position != 1:
        raise NotApplicable("triangular_solve is not linear in its matrix")
    op = p.Op.TRANSPOSE if prim.op is p.Op.PLAIN else p.Op.PLAIN
    if prim.op is p.Op.ADJOINT:
        a = m.conj(b, a)
    solve = p.TriangularSolve(prim.lower, op, prim.unit_diagonal)
    return at(1, b(solve, a, only(cts)), ins)


def _lu_jvp(
    b: RuleBuilder, prim: p.Lu, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate P·A = L·U: dL = L·tril(M, -1) and dU = triu(M)·U with M = L⁻¹·P·dA·U⁻¹.

    L and U of a rectangular A are completed to square matrices by unit rows and columns.
    """
    (da,) = tangents
    assert da is not None
    lu, pivots, order = b.emit(prim, primals)
    *_, rows, columns = lu.type.shape
    l_, u = m.resized(b, lu, rows, rows), _completed(b, m.above(b, lu), columns)
    left = m.solved(b, l_, m.rows(b, da, order), lower=True, unit_diagonal=True)
    inner = m.solved_right(b, left, u, lower=False)
    low, up = m.below(b, inner, diagonal=False), m.above(b, inner)
    # L is 1 on its diagonal, so L·low = low + (strict part of L)·low.
    d_low = add(b, low, m.matmul(b, m.below(b, l_, diagonal=False), low))
    return JvpOut([lu, pivots, order], [add(b, d_low, m.matmul(b, up, u)), None, None])


def _completed(b: RuleBuilder, u: Atom, n: int) -> Atom:
    """Return the square matrix with the rows of ``u`` first, and 1 on the rest of its diagonal."""
    square, given = m.resized(b, u, n, n), u.type.shape[-2]
    if given >= n:
        return square
    places = b(Iota(INT32, square.type.shape[:-1], len(square.type.shape) - 2))
    rest = b(ConvertElementType(u.type.dtype), b(Ge(), places, const(given, places)))
    return add(b, square, m.diagonal_matrix(b, rest))


def _eig_jvp(
    b: RuleBuilder, prim: p.Eig, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A·V = V·diag w: dw = diag C and dV = V·(F∘C + D) with C = V⁻¹·dA·V.

    F_ij = 1/(w_j - w_i): 0 on the diagonal, nan for other equal eigenvalues. The diagonal D keeps
    the norms and the phases of the columns. Left vectors are those of Aᴴ, of conjugate values.
    """
    (a,), (da,) = primals, tangents
    assert da is not None
    w, *vectors = b.emit(p.Eig(prim.left, True), [a])
    v, moved = vectors[-1], m.like(b, da, w)
    inner = _in_basis(b, v, moved)
    tangents_out: list[Atom] = [m.diagonal(b, inner)]
    if prim.left:
        of_adjoint = _in_basis(b, vectors[0], m.adjoint(b, moved))
        tangents_out.append(_eigenvectors_moved(b, m.conj(b, w), vectors[0], of_adjoint))
    if prim.right:
        tangents_out.append(_eigenvectors_moved(b, w, v, inner))
    return JvpOut([w, *vectors][: len(tangents_out)], tangents_out)


def _in_basis(b: RuleBuilder, v: Atom, x: Atom) -> Atom:
    """Return V⁻¹·X·V."""
    lu, _, order = b.emit(p.Lu(), [v])
    right = m.rows(b, m.matmul(b, x, v), order)
    return m.solved(b, lu, m.solved(b, lu, right, lower=True, unit_diagonal=True), lower=False)


def _eigenvectors_moved(b: RuleBuilder, w: Atom, v: Atom, inner: Atom) -> Atom:
    dv = m.matmul(b, v, mul(b, m.inverse_differences(b, w), inner))
    n = len(v.type.shape)
    along = m.real(b, b(ReduceSum((n - 2,)), mul(b, m.conj(b, v), dv)))
    places = m.leading_places(b, v)
    lead, turned = m.leading(b, v, places), m.leading(b, dv, places)
    turn = div(b, b(Imag(), turned), m.real(b, lead))
    by = neg(b, b(Complex(), along, turn))
    return add(b, dv, mul(b, v, m.across_rows(b, by)))


def _qr_jvp(
    b: RuleBuilder, prim: p.Qr, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A = Q·R: dR = Qᴴ·(dA - dQ·R), dQ = Q·(Ω - C) + dA·R⁻¹ (Walter, Lehmann 2010).

    C = Qᴴ·dA·R⁻¹, and Ω is the skew-Hermitian matrix with the strictly lower triangle of C and,
    so that dR has a real diagonal, the imaginary diagonal of C. Q depends on the first columns of
    a wide A alone, as many as it has rows.
    """
    (a,), (da,) = primals, tangents
    assert da is not None
    *_, rows, columns = a.type.shape
    if prim.full and rows > columns > 0:
        raise NotApplicable(
            "the derivative of qr is not determined for this shape",
            expected="mode='reduced' where there are fewer columns than rows",
            found=str(a.type),
        )
    q, r = b.emit(prim, primals)
    if not columns:
        return JvpOut([q, r], [zeros(b, q.type), zeros(b, r.type)])
    n = min(rows, columns)
    square, moved = (
        (r, da) if n == columns else (m.resized(b, x, x.type.shape[-2], n) for x in (r, da))
    )
    ratio = m.solved_right(b, moved, square, lower=False)
    inner = m.matmul(b, m.adjoint(b, q), ratio)
    low = m.below(b, inner, diagonal=False)
    turn = sub(b, low, m.adjoint(b, low))
    if is_complex(a.type.dtype):
        middle = m.diagonal(b, inner)
        turn = add(b, turn, m.diagonal_matrix(b, sub(b, middle, m.like(b, m.real(b, middle), a))))
    dq = add(b, m.matmul(b, q, sub(b, turn, inner)), ratio)
    if n == columns:
        return JvpOut([q, r], [dq, m.matmul(b, sub(b, inner, turn), r)])
    rest = sub(b, da, m.matmul(b, dq, r))
    return JvpOut([q, r], [dq, m.above(b, m.matmul(b, m.adjoint(b, q), rest))])


def _eigh_jvp(
    b: RuleBuilder, prim: p.Eigh, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A·V = V·diag w: dw = diag C and dV = V·(F∘C) (Giles 2008, 3.1).

    C = Vᴴ·dA·V, and F_ij = 1/(w_j - w_i): 0 on the diagonal, nan for other equal eigenvalues.
    """
    (da,) = tangents
    assert da is not None
    w, v = b.emit(prim, primals)
    inner = m.matmul(b, m.matmul(b, m.adjoint(b, v), m.hermitian(b, da)), v)
    weights = m.like(b, m.inverse_differences(b, w), v)
    return JvpOut([w, v], [m.real(b, m.diagonal(b, inner)), m.matmul(b, v, mul(b, weights, inner))])


def _svd_jvp(
    b: RuleBuilder, prim: p.Svd, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A = U·S·Vᴴ: ds = Re diag C, dU = U·(F∘P + G∘K), dV = V·(F∘P - G∘K).

    C = Uᴴ·dA·V is the sum of a Hermitian P and a skew-Hermitian K; F_ij = 1/(s_j - s_i) and
    G_ij = 1/(s_j + s_i) are 0 on the diagonal, and nan where they do not exist. For a rectangular
    A, dU or dV also has the part (I - UUᴴ)·dA·V·S⁻¹ or (I - VVᴴ)·dAᴴ·U·S⁻¹ (Townsend 2016, with
    the partial fractions of 1/(s_j² - s_i²)).
    """
    (a,), (da,) = primals, tangents
    assert da is not None
    u, s, vh = b.emit(p.Svd(), primals)
    v = m.adjoint(b, vh)
    rows, columns = a.type.shape[-2:]
    inner = m.matmul(b, m.matmul(b, m.adjoint(b, u), da), v)
    ds = m.real(b, m.diagonal(b, inner))
    if not prim.vectors:
        return JvpOut([s], [ds])
    back = m.adjoint(b, inner)
    skew = scaled(b, sub(b, inner, back), 0.5)
    common = mul(b, scaled(b, add(b, inner, back), 0.5), m.like(b, m.inverse_differences(b, s), a))
    apart = mul(b, skew, m.like(b, m.inverse_sums(b, s), a))
    turn_u, turn_v = add(b, common, apart), sub(b, common, apart)
    inverse = m.inverse_or_nan(b, s)
    if is_complex(a.type.dtype):
        # U and V are determined up to a common phase per column; the derivative moves U's.
        phase = mul(b, m.diagonal(b, skew), m.like(b, inverse, a))
        turn_u = add(b, turn_u, m.diagonal_matrix(b, phase))
    du, dv = m.matmul(b, u, turn_u), m.matmul(b, v, turn_v)
    if rows > columns:
        du = add(b, du, _out_of_space(b, m.matmul(b, da, v), u, inverse))
    if columns > rows:
        dv = add(b, dv, _out_of_space(b, m.matmul(b, m.adjoint(b, da), u), v, inverse))
    return JvpOut([u, s, vh], [du, ds, m.adjoint(b, dv)])


def _out_of_space(b: RuleBuilder, moved: Atom, basis: Atom, inverse: Atom) -> Atom:
    """Return the part of the columns orthogonal to the basis, each scaled by ``inverse``."""
    inside = m.matmul(b, basis, m.matmul(b, m.adjoint(b, basis), moved))
    factors = m.across_rows(b, inverse, moved.type.shape[-2])
    return mul(b, sub(b, moved, inside), m.like(b, factors, moved))


RULES: Final[RuleSet] = (
    NO_RULES.extend(
        p.Cholesky,
        array_rules(jvp=_cholesky_jvp, transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.TriangularSolve,
        array_rules(jvp=_solve_jvp, transpose=_solve_transpose, batch=_solve_batch),
    )
    .extend(
        p.Lu,
        array_rules(jvp=_lu_jvp, transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.Qr,
        array_rules(jvp=_qr_jvp, transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.Eigh,
        array_rules(jvp=_eigh_jvp, transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.Eig,
        array_rules(jvp=_eig_jvp, transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.Schur,
        array_rules(jvp=Unsupported(_NO_SCHUR), transpose=NONLINEAR, batch=_batch),
    )
    .extend(
        p.Svd,
        array_rules(jvp=_svd_jvp, transpose=NONLINEAR, batch=_batch),
    )
)
