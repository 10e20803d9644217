"""The lowering rules of indexed reads and updates."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import index as i
from effax.lowering.rules.index.dynamic_slice import dynamic_slice, dynamic_update_slice
from effax.lowering.rules.index.gather import gather
from effax.lowering.rules.index.scatter import combining, combining_rule, scatter
from effax.lowering.writer import NO_RULES, LoweringRules

RULES: Final[LoweringRules] = (
    NO_RULES.extend(i.Gather, gather)
    .extend(i.Scatter, scatter)
    .extend(i.ScatterAdd, combining_rule(combining("add")))
    .extend(i.ScatterMul, combining_rule(combining("multiply")))
    .extend(i.ScatterMax, combining_rule(combining("maximum", "or")))
    .extend(i.ScatterMin, combining_rule(combining("minimum", "and")))
    .extend(i.DynamicSlice, dynamic_slice)
    .extend(i.DynamicUpdateSlice, dynamic_update_slice)
)
