"""Lowering of pointwise primitives: operands of one shape, rules of one operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from effax.ir import prims as p
from effax.ir.dtypes import (
    DType,
    family,
)
from effax.ir.types import Shape
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, LoweringRule, LoweringRules, Val, Writer


def is_narrow(dtype: DType) -> bool:
    """Return whether the dtype is a float of fewer than 32 bits, accumulated in float32."""
    return family(dtype) == "float" and dtype.itemsize < 4


def common_shape(xs: Sequence[Val]) -> Shape:
    """Return the shape of the operands that are not scalars."""
    return next((x.shape for x in xs if x.shape), ())


def aligned(w: Writer, xs: Sequence[Val]) -> list[Val]:
    """Return the operands in one shape: scalars are broadcast."""
    shape = common_shape(xs)
    return [w.repeat(x, shape) for x in xs]


def same_rule(name: str) -> LoweringRule[p.Elementwise]:
    """Return the rule of a primitive that is one operation, on operands of one type."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        return (ops.same(w, name, *aligned(w, ins)),)

    return rule


def same_rules(operations: Mapping[type[p.Elementwise], str]) -> LoweringRules:
    """Return the rules of primitives that are one operation each."""
    rules = NO_RULES
    for prim, name in operations.items():
        rules = rules.extend(prim, same_rule(name))
    return rules
