"""Rules of comparison, extrema and logic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, JvpOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.pointwise import (
    add,
    const,
    constant,
    in_shape,
    mul,
    pointwise,
    total,
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
)
"""Primitives whose derivative is zero wherever it exists."""


def extremum_tangent(
    b: RuleBuilder, prim: Primitive, x: Atom, y: Atom, dx: Atom | None, dy: Atom | None
) -> Atom:
    """Return the tangent of ``prim``, a ``Max`` or ``Min``: of the operand that it returns.

    Equal operands share it, and beside nan it is 0. What is not returned is not selected: a product
    with 0 would be nan for infinite tangents, and for infinite slopes in reverse mode. Only
    operands are compared, see :func:`extremum_weights`.
    """
    before = p.Ge() if isinstance(prim, p.Max) else p.Le()
    share = where(b, b(p.Eq(), x, y), const(0.5, x), const(1, x))
    parts = [
        where(b, b(before, this, other), mul(b, d, share), const(0, d))
        for this, other, d in ((x, y, dx), (y, x, dy))
        if d is not None
    ]
    return parts[0] if len(parts) == 1 else add(b, *parts)


def extremum_weights(b: RuleBuilder, prim: Primitive, x: Atom, y: Atom) -> tuple[Atom, Atom]:
    """Return the derivatives of ``prim``, a ``Max`` or ``Min``, of ``x`` and ``y``.

    They are 1 and 0 where the operands differ, 1/2 and 1/2 where they are equal, and 0 where one
    is nan. Only operands are compared: XLA may compute them once for the result and again for a
    comparison, rounded otherwise, and neither would equal the result.
    """
    before = p.Gt() if isinstance(prim, p.Max) else p.Lt()
    shared = where(b, b(p.Eq(), x, y), const(0.5, x), const(0, x))
    one = const(1, x)
    return where(b, b(before, x, y), one, shared), where(b, b(before, y, x), one, shared)


def _extremum_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # d max(x, y) = [x > y]·dx + [y > x]·dy, halved where x = y
    z = b(prim, *primals)
    return JvpOut([z], [in_shape(b, extremum_tangent(b, prim, *primals, *tangents), z)])


def _clamp_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return the tangent of x strictly between the bounds, and of a bound strictly outside."""
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


def _constants() -> RuleSet:
    rules = NO_RULES
    for prim in CONSTANT:
        rules = rules.extend(prim, constant())
    return rules


RULES: Final[RuleSet] = (
    _constants()
    .extend(p.Ne, replace(constant(), tests_nan=True))
    .extend(p.Max, pointwise(_extremum_jvp))
    .extend(p.Min, pointwise(_extremum_jvp))
    .extend(p.Clamp, pointwise(_clamp_jvp))
)
