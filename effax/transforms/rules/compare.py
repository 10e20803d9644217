"""Rules of comparison, extrema and logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, JvpOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.pointwise import (
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


def extremum_weights(b: RuleBuilder, x: Atom, y: Atom, z: Atom) -> tuple[Atom, Atom]:
    """Return the derivatives of the max or min ``z`` of ``x`` and ``y``.

    They are 1 and 0 where the operands differ, 1/2 and 1/2 where they are equal, and 0 where z
    is nan.
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
    # d max(x, y) = [x > y]·dx + [y > x]·dy, halved where x = y
    z = b(prim, *primals)
    weights = extremum_weights(b, primals[0], primals[1], z)
    parts = [mul(b, d, w) for d, w in zip(tangents, weights, strict=True) if d is not None]
    return JvpOut([z], [total(b, parts, z)])


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
    .extend(p.Max, pointwise(_extremum_jvp))
    .extend(p.Min, pointwise(_extremum_jvp))
    .extend(p.Clamp, pointwise(_clamp_jvp))
)
