"""Lowering of comparison, extrema, and logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import (
    BOOL,
    family,
)
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import aligned, common_shape, same_rules
from effax.lowering.writer import LoweringRule, LoweringRules, Val, Writer

OPERATIONS: Final[dict[type[p.Elementwise], str]] = {
    p.Not: "not",
    p.PopulationCount: "popcnt",
    p.And: "and",
    p.Or: "or",
    p.Xor: "xor",
    p.ShiftLeft: "shift_left",
    p.ShiftRightLogical: "shift_right_logical",
    p.ShiftRightArithmetic: "shift_right_arithmetic",
}


COMPARISONS: Final[dict[type[p.Elementwise], str]] = {
    p.Eq: "EQ",
    p.Ne: "NE",
    p.Lt: "LT",
    p.Le: "LE",
    p.Gt: "GT",
    p.Ge: "GE",
}


def comparison_rule(direction: str) -> LoweringRule[p.Elementwise]:
    """Return the rule of a comparison."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        x, y = aligned(w, ins)
        return (ops.compare(w, direction, x, y),)

    return rule


def extreme_rule(name: str, of_booleans: str) -> LoweringRule[p.Elementwise]:
    """Return the rule of max or min."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        x, y = aligned(w, ins)
        return (ops.same(w, of_booleans if family(x.type.dtype) == "bool" else name, x, y),)

    return rule


def is_finite(w: Writer, prim: p.IsFinite, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    return (ops.mapped(w, "is_finite", x.type.update(dtype=BOOL), x),)


def clamp(w: Writer, prim: p.Clamp, ins: Sequence[Val]) -> Sequence[Val]:
    shape = common_shape(ins)
    low, x, high = ins
    x = w.repeat(x, shape)
    if family(x.type.dtype) == "bool":
        at_least = ops.same(w, "or", x, w.repeat(low, shape))
        return (ops.same(w, "and", at_least, w.repeat(high, shape)),)
    return (ops.mapped(w, "clamp", x.type, low, x, high),)


def _comparisons() -> LoweringRules:
    rules = same_rules(OPERATIONS)
    for prim, direction in COMPARISONS.items():
        rules = rules.extend(prim, comparison_rule(direction))
    return rules


RULES: Final[LoweringRules] = (
    _comparisons()
    .extend(p.Max, extreme_rule("maximum", "or"))
    .extend(p.Min, extreme_rule("minimum", "and"))
    .extend(p.IsFinite, is_finite)
    .extend(p.Clamp, clamp)
)
