"""Rules of arithmetic: sums, products, quotients, remainders, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import is_complex
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, JvpOut, Linear, RuleBuilder, RuleSet
from effax.transforms.rules.common.arrays import sum_to
from effax.transforms.rules.common.generic_rules import linear_jvp
from effax.transforms.rules.common.linear_operands import at, fixed, linear_operand, only
from effax.transforms.rules.common.pointwise import (
    binary,
    const,
    constant,
    div,
    in_shape,
    inverse_magnitude,
    mul,
    neg,
    pointwise,
    scaled,
    unary,
    where,
)


def _neg_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, -dx> = <-ct, dx>
    return [neg(b, only(cts))]


def _add_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx + dy> = <ct, dx> + <ct, dy>
    ct = only(cts)
    return [sum_to(b, ct, x.type.shape) if isinstance(x, Linear) else None for x in ins]


def _sub_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx - dy> = <ct, dx> + <-ct, dy>
    ct = only(cts)
    x, y = ins
    dx = sum_to(b, ct, x.type.shape) if isinstance(x, Linear) else None
    dy = neg(b, sum_to(b, ct, y.type.shape)) if isinstance(y, Linear) else None
    return [dx, dy]


def _mul_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx·y> = <ct·y, dx>
    position, x, (factor,) = linear_operand(prim, ins)
    return at(position, sum_to(b, mul(b, only(cts), factor), x.type.shape), ins)


def _div_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx/y> = <ct/y, dx>
    (divisor,) = fixed(prim, ins, 1)
    return [sum_to(b, div(b, only(cts), divisor), ins[0].type.shape), None]


def _strong_zero_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx·y> = <ct·y, dx>, where a cotangent of 0 times infinity is nan
    (slope,) = fixed(prim, ins, 1)
    return [sum_to(b, mul(b, only(cts), slope), ins[0].type.shape), None]


def _div_dy(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # d(x/y)/dy = -(x/y)/y
    return mul(b, d, neg(b, div(b, z, y)))


def _rem_dy(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # x rem y = x - y·trunc(x/y), so d(x rem y)/dy = -trunc(x/y)
    quotient = div(b, x, y)
    whole = mul(b, b(p.Sign(), quotient), b(p.Floor(), b(p.Abs(), quotient)))
    return mul(b, d, neg(b, whole))


def _sign_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate s = z/|z|: ds = i·s·Im(conj(s)·dz)/|z|, and 0 for real z and at 0."""
    (z,), (dz,) = primals, tangents
    s = b(prim, z)
    if not is_complex(z.type.dtype):
        return JvpOut([s], [None])
    assert dz is not None
    turn = b(p.Imag(), mul(b, b(p.Conj(), s), dz))
    angle = mul(b, turn, inverse_magnitude(b, b(p.Abs(), z)))
    return JvpOut([s], [mul(b, s, b(p.Complex(), lit(0, angle.type), angle))])


def _nextafter_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return dx: the second operand of nextafter only selects the direction."""
    z = b(prim, *primals)
    dx = tangents[0]
    return JvpOut([z], [None if dx is None else in_shape(b, dx, z)])


def _abs(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d|x| = sign(x)·dx, with slope 1 at 0; d|z| = Re(conj(z)·dz)/|z|, and 0 at 0, where the second
    # derivative is nan
    if not is_complex(x.type.dtype):
        return where(b, b(p.Ge(), x, const(0, x)), d, neg(b, d))
    toward = b(p.Real(), mul(b, b(p.Conj(), x), d))
    return mul(b, toward, inverse_magnitude(b, y))


RULES: Final[RuleSet] = (
    NO_RULES.extend(p.Neg, pointwise(linear_jvp, _neg_transpose))
    # d(x + y) = dx + dy
    .extend(p.Add, binary(lambda b, d, x, y, z: d, lambda b, d, x, y, z: d, _add_transpose))
    # d(x - y) = dx - dy
    .extend(
        p.Sub,
        binary(lambda b, d, x, y, z: d, lambda b, d, x, y, z: neg(b, d), _sub_transpose),
    )
    # d(x·y) = dx·y + x·dy
    .extend(
        p.Mul,
        binary(
            lambda b, d, x, y, z: mul(b, d, y),
            lambda b, d, x, y, z: mul(b, x, d),
            _mul_transpose,
        ),
    )
    # d(x·y) = dx·y + x·dy, with the strong zero in the tangent of a tangent only
    .extend(
        p.StrongZeroMul,
        binary(
            lambda b, d, x, y, z: b(p.StrongZeroMul(), d, y),
            lambda b, d, x, y, z: mul(b, x, d),
            _strong_zero_transpose,
        ),
    )
    # d(x/y) = dx/y - (x/y)·dy/y
    .extend(p.Div, binary(lambda b, d, x, y, z: div(b, d, y), _div_dy, _div_transpose))
    .extend(p.Rem, binary(lambda b, d, x, y, z: d, _rem_dy))
    # d(x²) = 2x·dx
    .extend(p.Square, unary(lambda b, d, x, y: mul(b, d, scaled(b, x, 2))))
    .extend(p.Sign, pointwise(_sign_jvp))
    .extend(p.Floor, constant())
    .extend(p.Ceil, constant())
    .extend(p.RoundEven, constant())
    .extend(p.Abs, unary(_abs))
    .extend(p.Nextafter, pointwise(_nextafter_jvp))
)
