"""Rules of mathematical functions. Their derivatives are those of the textbooks.

At the edge of a domain they give what the formula gives: sqrt has the slope inf at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, JvpOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.pointwise import (
    add,
    binary,
    const,
    div,
    mul,
    neg,
    nonzero,
    pointwise,
    scaled,
    shifted,
    square,
    sub,
    unary,
    where,
)


def _integer_pow_jvp(
    b: RuleBuilder, prim: p.IntegerPow, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """d(x^n) = n·x^(n-1)·dx, without 0^(-1) where n is 0."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y, n = b(prim, x), prim.y
    if n == 0:
        return JvpOut([y], [None])
    if n == 1:
        return JvpOut([y], [dx])
    power = x if n == 2 else b(p.IntegerPow(n - 1), x)
    return JvpOut([y], [mul(b, dx, scaled(b, power, n))])


def _pow_dx(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # d(x^y)/dx = y·x^(y-1), and 0 where y is 0, also where 1/x is no number. There it is the
    # power that is replaced: an infinity multiplied by 0 would be nan in the next derivative.
    size = b(p.Abs(), x)
    invertible = b(p.IsFinite(), div(b, const(1, size), size))
    flat = b(p.And(), b(p.Eq(), y, const(0, y)), b(p.Not(), invertible))
    return mul(b, d, mul(b, y, b(p.Pow(), x, where(b, flat, const(0, y), shifted(b, y, -1)))))


def _pow_dy(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # d(x^y)/dy = x^y·log x, and 0 where x is 0 and y is not negative
    return mul(b, d, mul(b, b(p.Log(), nonzero(b, x)), z))


def _tanh(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # 1 - y² = (1 + y)(1 - y), which does not cancel
    return mul(b, d, mul(b, shifted(b, y, 1), sub(b, const(1, y), y)))


def _acosh(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # 1/√(x² - 1) = 1/√(x + 1) · 1/√(x - 1), which neither cancels nor overflows
    return mul(b, d, mul(b, b(p.Rsqrt(), shifted(b, x, 1)), b(p.Rsqrt(), shifted(b, x, -1))))


def _one_minus_square(b: RuleBuilder, x: Atom) -> Atom:
    """``1 - x²``, with a value that does not cancel near 1 and a derivative that is -2x.

    The value is (1 + x)(1 - x); the derivative of that would multiply 0 by an infinity where
    x is 1 and the result is divided by.
    """
    plain = sub(b, const(1, x), square(b, x))
    exact = mul(b, shifted(b, x, 1), sub(b, const(1, x), x))
    return add(b, plain, b(p.StopGradient(), sub(b, exact, plain)))


def _gauss(b: RuleBuilder, x: Atom, sign: int) -> Atom:
    """``sign · 2/√π · exp(-x²)``, which is 0 in every dtype from 30 on, infinity included."""
    near = b(p.Clamp(), const(-30, x), x, const(30, x))
    return scaled(b, b(p.Exp(), neg(b, square(b, near))), sign * 2 / math.sqrt(math.pi))


def _atan2_dy(b: RuleBuilder, d: Atom, y: Atom, x: Atom, z: Atom) -> Atom:
    # d atan2(y, x)/dy = x/(x² + y²)
    return mul(b, d, _over_square(b, x, x, y))


def _atan2_dx(b: RuleBuilder, d: Atom, y: Atom, x: Atom, z: Atom) -> Atom:
    # d atan2(y, x)/dx = -y/(x² + y²)
    return mul(b, d, neg(b, _over_square(b, y, x, y)))


def _over_square(b: RuleBuilder, part: Atom, x: Atom, y: Atom) -> Atom:
    """``part/(x² + y²)`` without overflow: everything is scaled by the greater of |x| and |y|.

    The last factor is no quotient, since XLA makes one of quotients of quotients.
    """
    scale = b(p.StopGradient(), b(p.Max(), b(p.Abs(), x), b(p.Abs(), y)))
    length = add(b, square(b, div(b, x, scale)), square(b, div(b, y, scale)))
    return mul(b, div(b, div(b, part, scale), length), b(p.IntegerPow(-1), scale))


RULES: Final[RuleSet] = (
    NO_RULES.extend(p.Exp, unary(lambda b, d, x, y: mul(b, d, y)))
    .extend(p.Exp2, unary(lambda b, d, x, y: mul(b, d, scaled(b, y, math.log(2)))))
    .extend(p.Expm1, unary(lambda b, d, x, y: mul(b, d, shifted(b, y, 1))))
    .extend(p.Log, unary(lambda b, d, x, y: div(b, d, x)))
    .extend(p.Log1p, unary(lambda b, d, x, y: div(b, d, shifted(b, x, 1))))
    .extend(p.Sqrt, unary(lambda b, d, x, y: mul(b, d, div(b, const(0.5, y), y))))
    .extend(p.Rsqrt, unary(lambda b, d, x, y: mul(b, d, scaled(b, div(b, y, x), -0.5))))
    .extend(
        p.Cbrt,
        unary(lambda b, d, x, y: mul(b, d, scaled(b, b(p.IntegerPow(-2), y), 1 / 3))),
    )
    .extend(p.Sin, unary(lambda b, d, x, y: mul(b, d, b(p.Cos(), x))))
    .extend(p.Cos, unary(lambda b, d, x, y: mul(b, d, neg(b, b(p.Sin(), x)))))
    .extend(p.Tan, unary(lambda b, d, x, y: mul(b, d, shifted(b, square(b, y), 1))))
    .extend(
        p.Asin,
        unary(lambda b, d, x, y: mul(b, d, b(p.Rsqrt(), _one_minus_square(b, x)))),
    )
    .extend(
        p.Acos,
        unary(lambda b, d, x, y: mul(b, d, neg(b, b(p.Rsqrt(), _one_minus_square(b, x))))),
    )
    .extend(p.Atan, unary(lambda b, d, x, y: div(b, d, shifted(b, square(b, x), 1))))
    .extend(p.Atan2, binary(_atan2_dy, _atan2_dx))
    .extend(p.Sinh, unary(lambda b, d, x, y: mul(b, d, b(p.Cosh(), x))))
    .extend(p.Cosh, unary(lambda b, d, x, y: mul(b, d, b(p.Sinh(), x))))
    .extend(p.Tanh, unary(_tanh))
    .extend(
        p.Asinh,
        unary(lambda b, d, x, y: mul(b, d, b(p.Rsqrt(), shifted(b, square(b, x), 1)))),
    )
    .extend(p.Acosh, unary(_acosh))
    .extend(p.Atanh, unary(lambda b, d, x, y: div(b, d, _one_minus_square(b, x))))
    # d logistic(x) = y(1 - y) dx
    .extend(
        p.Logistic,
        unary(lambda b, d, x, y: mul(b, d, mul(b, y, sub(b, const(1, y), y)))),
    )
    .extend(p.Erf, unary(lambda b, d, x, y: mul(b, d, _gauss(b, x, 1))))
    .extend(p.Erfc, unary(lambda b, d, x, y: mul(b, d, _gauss(b, x, -1))))
    .extend(p.Pow, binary(_pow_dx, _pow_dy))
    .extend(p.IntegerPow, pointwise(_integer_pow_jvp))
)
