"""Rules of mathematical functions.

At the edge of a domain a derivative is the value of its formula: the slope of sqrt at 0 is inf.
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
    inverse_magnitude,
    mul,
    neg,
    nonzero,
    pointwise,
    scaled,
    shifted,
    slope_product,
    square,
    sub,
    unary,
    where,
)


def _integer_pow_jvp(
    b: RuleBuilder, prim: p.IntegerPow, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate d(x^n) = n·x^(n-1)·dx, which avoids x^(-1) for n = 0."""
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
    # d(x^y)/dx = y·x^(y-1), and 0 where y = 0, even if 1/x is not finite. The exponent is
    # replaced, not the product: 0·inf would be nan in the second derivative.
    size = b(p.Abs(), x)
    invertible = b(p.IsFinite(), div(b, const(1, size), size))
    flat = b(p.And(), b(p.Eq(), y, const(0, y)), b(p.Not(), invertible))
    return mul(b, d, mul(b, y, b(p.Pow(), x, where(b, flat, const(0, y), shifted(b, y, -1)))))


def _pow_dy(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # d(x^y)/dy = x^y·log x, and 0 where x = 0 and y >= 0
    return mul(b, d, mul(b, b(p.Log(), nonzero(b, x)), z))


def _magnitude(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d √s = ds/(2y), and 0 at 0, where the second derivative is nan
    return mul(b, d, scaled(b, inverse_magnitude(b, y), 0.5))


def _tanh(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d tanh(x) = (1 - y²)·dx; (1 + y)(1 - y) does not cancel near |y| = 1
    return mul(b, d, mul(b, shifted(b, y, 1), sub(b, const(1, y), y)))


def _acosh(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d acosh(x) = dx/√(x² - 1); 1/√(x + 1) · 1/√(x - 1) neither cancels nor overflows
    slope = mul(b, b(p.Rsqrt(), shifted(b, x, 1)), b(p.Rsqrt(), shifted(b, x, -1)))
    return slope_product(b, d, slope)


def _asin(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d asin(x) = dx/√(1 - x²)
    return slope_product(b, d, b(p.Rsqrt(), _one_minus_square(b, x)))


def _one_minus_square(b: RuleBuilder, x: Atom) -> Atom:
    """Return ``1 - x²``, with a value that does not cancel near 1 and the derivative -2x.

    The value is (1 + x)(1 - x). Its own derivative is not used: a quotient by the result would
    multiply 0 by an infinity at x = 1.
    """
    plain = sub(b, const(1, x), square(b, x))
    exact = mul(b, shifted(b, x, 1), sub(b, const(1, x), x))
    return add(b, plain, b(p.StopGradient(), sub(b, exact, plain)))


def _gauss(b: RuleBuilder, x: Atom, sign: int) -> Atom:
    """Return ``sign · 2/√π · exp(-x²)``, which is 0 in every dtype for |x| >= 30."""
    near = b(p.Clamp(), const(-30, x), x, const(30, x))
    return scaled(b, b(p.Exp(), neg(b, square(b, near))), sign * 2 / math.sqrt(math.pi))


def _atan2_dy(b: RuleBuilder, d: Atom, y: Atom, x: Atom, z: Atom) -> Atom:
    # d atan2(y, x)/dy = x/(x² + y²)
    return mul(b, d, _over_square(b, x, x, y))


def _atan2_dx(b: RuleBuilder, d: Atom, y: Atom, x: Atom, z: Atom) -> Atom:
    # d atan2(y, x)/dx = -y/(x² + y²)
    return mul(b, d, neg(b, _over_square(b, y, x, y)))


def _over_square(b: RuleBuilder, part: Atom, x: Atom, y: Atom) -> Atom:
    """Return ``part/(x² + y²)`` without overflow: all is scaled by the greater of |x| and |y|.

    The last factor is a power, since XLA merges quotients of quotients.
    """
    scale = b(p.StopGradient(), b(p.Max(), b(p.Abs(), x), b(p.Abs(), y)))
    length = add(b, square(b, div(b, x, scale)), square(b, div(b, y, scale)))
    return mul(b, div(b, div(b, part, scale), length), b(p.IntegerPow(-1), scale))


RULES: Final[RuleSet] = (
    # d exp(x) = y·dx
    NO_RULES.extend(p.Exp, unary(lambda b, d, x, y: mul(b, d, y)))
    # d 2^x = log 2·y·dx
    .extend(p.Exp2, unary(lambda b, d, x, y: mul(b, d, scaled(b, y, math.log(2)))))
    # d(exp(x) - 1) = (y + 1)·dx
    .extend(p.Expm1, unary(lambda b, d, x, y: mul(b, d, shifted(b, y, 1))))
    # d log(x) = dx/x;  d log(1 + x) = dx/(1 + x)
    .extend(p.Log, unary(lambda b, d, x, y: div(b, d, x)))
    .extend(p.Log1p, unary(lambda b, d, x, y: div(b, d, shifted(b, x, 1))))
    # d √x = dx/(2y);  d x^(-1/2) = -y/(2x)·dx;  d x^(1/3) = dx/(3y²)
    .extend(p.Sqrt, unary(lambda b, d, x, y: slope_product(b, d, div(b, const(0.5, y), y))))
    .extend(p.Magnitude, unary(_magnitude))
    .extend(p.Rsqrt, unary(lambda b, d, x, y: mul(b, d, scaled(b, div(b, y, x), -0.5))))
    .extend(
        p.Cbrt,
        unary(lambda b, d, x, y: mul(b, d, scaled(b, b(p.IntegerPow(-2), y), 1 / 3))),
    )
    # d sin(x) = cos(x)·dx;  d cos(x) = -sin(x)·dx;  d tan(x) = (1 + y²)·dx
    .extend(p.Sin, unary(lambda b, d, x, y: mul(b, d, b(p.Cos(), x))))
    .extend(p.Cos, unary(lambda b, d, x, y: mul(b, d, neg(b, b(p.Sin(), x)))))
    .extend(p.Tan, unary(lambda b, d, x, y: mul(b, d, shifted(b, square(b, y), 1))))
    # d acos(x) = -d asin(x);  d atan(x) = dx/(1 + x²)
    .extend(p.Asin, unary(_asin))
    .extend(p.Acos, unary(lambda b, d, x, y: neg(b, _asin(b, d, x, y))))
    .extend(p.Atan, unary(lambda b, d, x, y: div(b, d, shifted(b, square(b, x), 1))))
    .extend(p.Atan2, binary(_atan2_dy, _atan2_dx))
    # d sinh(x) = cosh(x)·dx;  d cosh(x) = sinh(x)·dx
    .extend(p.Sinh, unary(lambda b, d, x, y: mul(b, d, b(p.Cosh(), x))))
    .extend(p.Cosh, unary(lambda b, d, x, y: mul(b, d, b(p.Sinh(), x))))
    .extend(p.Tanh, unary(_tanh))
    # d asinh(x) = dx/√(1 + x²)
    .extend(
        p.Asinh,
        unary(lambda b, d, x, y: mul(b, d, b(p.Rsqrt(), shifted(b, square(b, x), 1)))),
    )
    .extend(p.Acosh, unary(_acosh))
    # d atanh(x) = dx/(1 - x²)
    .extend(p.Atanh, unary(lambda b, d, x, y: div(b, d, _one_minus_square(b, x))))
    # d logistic(x) = y·(1 - y)·dx
    .extend(
        p.Logistic,
        unary(lambda b, d, x, y: mul(b, d, mul(b, y, sub(b, const(1, y), y)))),
    )
    # d erf(x) = 2/√π·exp(-x²)·dx = -d erfc(x)
    .extend(p.Erf, unary(lambda b, d, x, y: mul(b, d, _gauss(b, x, 1))))
    .extend(p.Erfc, unary(lambda b, d, x, y: mul(b, d, _gauss(b, x, -1))))
    .extend(p.Pow, binary(_pow_dx, _pow_dy))
    .extend(p.IntegerPow, pointwise(_integer_pow_jvp))
)
