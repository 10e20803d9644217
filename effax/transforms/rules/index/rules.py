"""The rule set of indexed reads and updates."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import index as p
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.common.generic_rules import (
    NONLINEAR,
    array_rules,
    first_linear_jvp,
)
from effax.transforms.rules.index import combining, dynamic_slice, gather, scatter

_EXTREME: Final[Rules[p.Combining]] = array_rules(
    jvp=combining.extreme_jvp, transpose=NONLINEAR, batch=scatter.scatter_batch
)

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        p.Gather,
        array_rules(
            jvp=first_linear_jvp,
            transpose=gather.gather_transpose,
            batch=gather.gather_batch,
            sparse=True,
        ),
    )
    .extend(
        p.Scatter,
        array_rules(
            jvp=scatter.update_jvp, transpose=scatter.scatter_transpose, batch=scatter.scatter_batch
        ),
    )
    .extend(
        p.ScatterAdd,
        array_rules(
            jvp=scatter.scatter_add_jvp,
            transpose=scatter.scatter_add_transpose,
            batch=scatter.scatter_batch,
        ),
    )
    .extend(
        p.ScatterMul,
        array_rules(
            jvp=combining.mul_jvp, transpose=combining.mul_transpose, batch=scatter.scatter_batch
        ),
    )
    .extend(p.ScatterMax, _EXTREME)
    .extend(p.ScatterMin, _EXTREME)
    .extend(
        p.DynamicSlice,
        array_rules(
            jvp=first_linear_jvp,
            transpose=dynamic_slice.dynamic_slice_transpose,
            batch=dynamic_slice.dynamic_slice_batch,
            sparse=True,
        ),
    )
    .extend(
        p.DynamicUpdateSlice,
        array_rules(
            jvp=scatter.update_jvp,
            transpose=dynamic_slice.dynamic_update_transpose,
            batch=dynamic_slice.dynamic_update_batch,
        ),
    )
)
