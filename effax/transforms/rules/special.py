"""Rules of special functions: their derivatives.

Sources: NIST Digital Library of Mathematical Functions, 5.2 and 5.15 (polygamma), 8.8 and 8.17
(incomplete gamma and beta functions), 10.29 (Bessel functions), 25.11 (Hurwitz's zeta function).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from effax.ir import prims as p
from effax.ir.errors import NotApplicable
from effax.ir.prims.special import Formula
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    NO_RULES,
    JvpOut,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common.pointwise import (
    Partial,
    add,
    binary,
    const,
    div,
    mul,
    neg,
    pointwise,
    shifted,
    sub,
    total,
    unary,
    where,
)


def _no_partial(what: str) -> Partial:
    def refuse(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
        raise NotApplicable(f"the derivative of {what} is not available")

    return refuse


def _gamma_density(b: RuleBuilder, a: Atom, x: Atom) -> Atom:
    """Return x^(a - 1)·exp(-x)/Γ(a), and 0 at infinity."""
    size = sub(b, mul(b, shifted(b, a, -1), b(p.Log(), x)), b(p.Lgamma(), a))
    return b(p.Exp(), sub(b, size, x))


def _igamma_dx(b: RuleBuilder, d: Atom, a: Atom, x: Atom, y: Atom) -> Atom:
    return mul(b, d, _at_finite(b, x, _gamma_density(b, a, x)))


def _at_finite(b: RuleBuilder, x: Atom, slope: Atom) -> Atom:
    infinite = b(p.Eq(), x, const(math.inf, x))
    if x.type.shape != slope.type.shape:
        return slope
    return where(b, infinite, const(0, slope), slope)


def _slope_dx(b: RuleBuilder, d: Atom, a: Atom, x: Atom, y: Atom) -> Atom:
    # d²P/(da·dx) = density·(log x - ψ(a))
    steep = sub(b, b(p.Log(), x), b(p.Digamma(), a))
    return mul(b, d, mul(b, _gamma_density(b, a, x), steep))


def _zeta_dq(b: RuleBuilder, d: Atom, x: Atom, q: Atom, y: Atom) -> Atom:
    # dζ(x, q)/dq = -x·ζ(x + 1, q)
    return mul(b, d, neg(b, mul(b, x, b(p.Zeta(), shifted(b, x, 1), q))))


def _zeta_dx(b: RuleBuilder, d: Atom, x: Atom, q: Atom, y: Atom) -> Atom:
    return mul(b, d, b(p.ZetaGradX(), x, q))


def _zeta_grad_dq(b: RuleBuilder, d: Atom, x: Atom, q: Atom, y: Atom) -> Atom:
    # d²ζ/(dx·dq) = -ζ(x + 1, q) - x·ζ_x(x + 1, q)
    above = shifted(b, x, 1)
    return mul(b, d, neg(b, add(b, b(p.Zeta(), above, q), mul(b, x, b(p.ZetaGradX(), above, q)))))


def _polygamma_dx(b: RuleBuilder, d: Atom, n: Atom, x: Atom, y: Atom) -> Atom:
    return mul(b, d, b(p.Polygamma(), shifted(b, n, 1), x))


def _i0e(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d exp(-|x|)·I0 = (exp(-|x|)·I1 - sign(x)·y)·dx
    return mul(b, d, sub(b, b(p.BesselI1e(), x), mul(b, b(p.Sign(), x), y)))


def _i1e(b: RuleBuilder, d: Atom, x: Atom, y: Atom) -> Atom:
    # d exp(-|x|)·I1 = (exp(-|x|)·I0 - y·(sign(x) + 1/x))·dx, and y/x is 1/2 at 0
    zero = b(p.Eq(), x, const(0, x))
    safe = where(b, zero, const(1, x), x)
    ratio = where(b, zero, const(0.5, x), div(b, y, safe))
    slope = sub(b, b(p.BesselI0e(), x), add(b, ratio, mul(b, b(p.Sign(), x), y)))
    return mul(b, d, slope)


def _beta_slope(b: RuleBuilder, primals: Sequence[Atom]) -> Atom:
    """Return x^(a - 1)·(1 - x)^(b - 1)/B(a, b)."""
    p_, q, x = primals
    logs = add(
        b,
        mul(b, shifted(b, p_, -1), b(p.Log(), x)),
        mul(b, shifted(b, q, -1), b(p.Log1p(), neg(b, x))),
    )
    lgammas = [b(p.Lgamma(), y) for y in (add(b, p_, q), p_, q)]
    return b(p.Exp(), add(b, logs, sub(b, sub(b, lgammas[0], lgammas[1]), lgammas[2])))


def _betainc_jvp(
    b: RuleBuilder,
    prim: p.RegularizedIncompleteBeta,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    y = b(prim, *primals)
    by_a, by_b, by_x = tangents
    parts: list[Atom] = []
    if by_a is not None:
        parts.append(mul(b, by_a, b(p.RegularizedIncompleteBetaGradA(), *primals)))
    if by_b is not None:
        parts.append(mul(b, by_b, b(p.RegularizedIncompleteBetaGradB(), *primals)))
    if by_x is not None:
        parts.append(mul(b, by_x, _beta_slope(b, primals)))
    return JvpOut([y], [total(b, parts, y)])


def _beta_grad_jvp(
    wrt: int,
    b: RuleBuilder,
    prim: Formula,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Differentiate in x: slope·(log x - ψ(a) + ψ(a + b)), or log(1 - x) and ψ(b)."""
    if tangents[0] is not None or tangents[1] is not None:
        raise NotApplicable(f"the derivative of {prim.name} in a parameter is not available")
    y, dx = b(prim, *primals), tangents[2]
    assert dx is not None
    x = primals[2]
    log = b(p.Log(), x) if wrt == 0 else b(p.Log1p(), neg(b, x))
    both = b(p.Digamma(), add(b, primals[0], primals[1]))
    steep = add(b, sub(b, log, b(p.Digamma(), primals[wrt])), both)
    part = mul(b, dx, mul(b, _beta_slope(b, primals), steep))
    return JvpOut([y], [total(b, [part], y)])


def _beta_grad(wrt: int) -> Rules[Formula]:
    return pointwise(partial(_beta_grad_jvp, wrt))


RULES: Final[RuleSet] = (
    # d log|Γ(x)| = ψ(x)·dx;  dψ(x) = ψ'(x)·dx
    NO_RULES.extend(p.Lgamma, unary(lambda b, d, x, y: mul(b, d, b(p.Digamma(), x))))
    .extend(
        p.Digamma,
        unary(lambda b, d, x, y: mul(b, d, b(p.Polygamma(), const(1, x), x))),
    )
    .extend(p.Polygamma, binary(_no_partial("polygamma in its order"), _polygamma_dx))
    .extend(p.Zeta, binary(_zeta_dx, _zeta_dq))
    .extend(p.ZetaGradX, binary(_no_partial("zeta in its exponent, a second time,"), _zeta_grad_dq))
    # dP(a, x) = P_a·da + density·dx = -dQ(a, x)
    .extend(
        p.Igamma,
        binary(lambda b, d, a, x, y: mul(b, d, b(p.IgammaGradA(), a, x)), _igamma_dx),
    )
    .extend(
        p.Igammac,
        binary(
            lambda b, d, a, x, y: mul(b, d, neg(b, b(p.IgammaGradA(), a, x))),
            lambda b, d, a, x, y: neg(b, _igamma_dx(b, d, a, x, y)),
        ),
    )
    .extend(p.IgammaGradA, binary(_no_partial("igamma_grad_a in its shape"), _slope_dx))
    .extend(
        p.RandomGammaGrad,
        binary(_no_partial("random_gamma_grad"), _no_partial("random_gamma_grad")),
    )
    .extend(p.RegularizedIncompleteBeta, pointwise(_betainc_jvp))
    .extend(p.RegularizedIncompleteBetaGradA, _beta_grad(0))
    .extend(p.RegularizedIncompleteBetaGradB, _beta_grad(1))
    .extend(p.BesselI0e, unary(_i0e))
    .extend(p.BesselI1e, unary(_i1e))
)
