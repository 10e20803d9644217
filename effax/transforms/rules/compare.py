"""Rules of comparison, logic, selection, conversion, and of the parts of complex numbers.

Where operands of max and min are equal, each gets half of the tangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import is_complex, is_inexact_dtype
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType
from effax.transforms.framework.rules import NO_RULES, JvpOut, Linear, RuleBuilder, RuleSet
from effax.transforms.rules.common import array_of, linear_jvp, sum_to
from effax.transforms.rules.linear import fixed, only
from effax.transforms.rules.pointwise import (
    const,
    constant,
    div,
    in_shape,
    mul,
    neg,
    nonzero,
    pointwise,
    total,
    unary,
    where,
)

CONSTANT: Final[tuple[type[Primitive], ...]] = (
    p.Eq,
    p.Ne,
    p.Lt,
    p.Le,
    p.Gt,
    p.Ge,
    p.IsFinite,
    p.Not,
    p.And,
    p.Or,
    p.Xor,
    p.ShiftLeft,
    p.ShiftRightLogical,
    p.ShiftRightArithmetic,
    p.PopulationCount,
    p.StopGradient,
    p.BitcastConvertType,
)
"""Primitives whose derivative is zero wherever they have one, or zero by definition."""


def extremum_weights(b: RuleBuilder, x: Atom, y: Atom, z: Atom) -> tuple[Atom, Atom]:
    """How much of the tangents of ``x`` and ``y`` goes into their max or min ``z``.

    1 and 0 where they differ, a half each where they are equal, 0 and 0 where z is nan.
    """
    in_x, in_y = b(p.Eq(), x, z), b(p.Eq(), y, z)
    one, half, zero = const(1, z), const(0.5, z), const(0, z)
    return (
        where(b, in_x, where(b, in_y, half, one), zero),
        where(b, in_y, where(b, in_x, half, one), zero),
    )


def _extremum_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    z = b(prim, *primals)
    weights = extremum_weights(b, primals[0], primals[1], z)
    parts = [mul(b, d, w) for d, w in zip(tangents, weights, strict=True) if d is not None]
    return JvpOut([z], [total(b, parts, z)])


def _clamp_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The tangent of the operand strictly between the bounds, of the bound strictly outside."""
    low, x, high = primals
    z = b(prim, low, x, high)
    inside = b(p.And(), b(p.Gt(), x, low), b(p.Lt(), x, high))
    below = b(p.And(), b(p.Gt(), low, x), b(p.Lt(), low, high))
    above = b(p.Gt(), x, high)
    parts = [
        in_shape(b, where(b, region, d, const(0, d)), z)
        for region, d in zip((below, inside, above), tangents, strict=True)
        if d is not None
    ]
    return JvpOut([z], [total(b, parts, z)])


def _nextafter_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The next float moves with the first operand; the second only gives the direction."""
    z = b(prim, *primals)
    dx = tangents[0]
    return JvpOut([z], [None if dx is None else in_shape(b, dx, z)])


def _abs(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # The slope at 0 is 1; d|z| = Re(conj(z)·dz)/|z|, and 0 at 0
    if not is_complex(x.type.dtype):
        return where(b, b(p.Ge(), x, const(0, x)), d, neg(b, d))
    toward = b(p.Real(), mul(b, b(p.Conj(), x), d))
    return div(b, toward, nonzero(b, y))


def _select_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    which, *cases = primals
    z = b(prim, which, *cases)
    chosen = [
        const(0, case) if d is None else d for case, d in zip(cases, tangents[1:], strict=True)
    ]
    return JvpOut([z], [in_shape(b, b(prim, which, *chosen), z)])


def _select_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, select(which, ..., x, ...)> = <select(which, ..., ct, ...), x>, zeros elsewhere
    ct = only(cts)
    cases = ins[1:]
    which = fixed(prim, ins[:1], 0)[0]
    made: list[Atom | None] = [None]
    for i, case in enumerate(cases):
        if isinstance(case, Linear):
            chosen = [ct if j == i else const(0, ct) for j in range(len(cases))]
            made.append(sum_to(b, b(prim, which, *chosen), case.type.shape))
        else:
            made.append(None)
    return made


def _convert_jvp(
    b: RuleBuilder,
    prim: p.ConvertElementType,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    if not is_inexact_dtype(prim.new_dtype):
        return JvpOut([y], [None])
    return JvpOut([y], [b(p.ConvertElementType(prim.new_dtype), dx)])


def convert_back(b: RuleBuilder, ct: Atom, type_: ArrayType) -> Atom:
    """A cotangent in the dtype of ``type_``: the real part where that is real."""
    if is_complex(ct.type.dtype) and not is_complex(type_.dtype):
        ct = b(p.Real(), ct)
    return ct if ct.type.dtype == type_.dtype else b(p.ConvertElementType(type_.dtype), ct)


def _convert_transpose(
    b: RuleBuilder,
    prim: p.ConvertElementType,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    return [convert_back(b, only(cts), array_of(ins[0]))]


def _identity_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    return JvpOut(b.emit(prim, primals), tangents)


def _identity_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [only(cts)]


# Cotangents pair with tangents as Re(ct·d), without conjugation.


def _real_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # t·Re z = Re((t + 0i)·z)
    ct = only(cts)
    return [b(p.Complex(), ct, const(0, ct))]


def _imag_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # t·Im z = Re((0 - ti)·z)
    ct = only(cts)
    return [b(p.Complex(), const(0, ct), neg(b, ct))]


def _complex_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # Re(t·(x + iy)) = Re t·x - Im t·y
    ct = only(cts)
    x, y = ins
    dx = sum_to(b, b(p.Real(), ct), x.type.shape) if isinstance(x, Linear) else None
    dy = sum_to(b, neg(b, b(p.Imag(), ct)), y.type.shape) if isinstance(y, Linear) else None
    return [dx, dy]


def _conj_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # Re(t·conj(z)) = Re(conj(t)·z)
    return [b(p.Conj(), only(cts))]


def _complex_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    z = b(prim, *primals)
    parts = [const(0, x) if d is None else d for x, d in zip(primals, tangents, strict=True)]
    return JvpOut([z], [in_shape(b, b(prim, *parts), z)])


def _constants() -> RuleSet:
    rules = NO_RULES
    for prim in CONSTANT:
        rules = rules.extend(prim, constant())
    return rules


COMPARISON: Final[RuleSet] = (
    _constants()
    .extend(p.Max, pointwise(_extremum_jvp))
    .extend(p.Min, pointwise(_extremum_jvp))
    .extend(p.Clamp, pointwise(_clamp_jvp))
    .extend(p.Abs, unary(_abs))
    .extend(p.Nextafter, pointwise(_nextafter_jvp))
    .extend(p.SelectN, pointwise(_select_jvp, _select_transpose))
    .extend(p.ConvertElementType, pointwise(_convert_jvp, _convert_transpose))
    .extend(p.Copy, pointwise(_identity_jvp, _identity_transpose))
    .extend(p.Real, pointwise(linear_jvp, _real_transpose))
    .extend(p.Imag, pointwise(linear_jvp, _imag_transpose))
    .extend(p.Complex, pointwise(_complex_jvp, _complex_transpose))
    .extend(p.Conj, pointwise(linear_jvp, _conj_transpose))
)
