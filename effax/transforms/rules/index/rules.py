"""The rules of indexed reads and updates, put together."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import index as p
from effax.transforms.framework.rules import NO_RULES, Indivisible, Rules, RuleSet
from effax.transforms.rules.common.generic_rules import first_linear_jvp, no_refs
from effax.transforms.rules.common.pointwise import NONLINEAR
from effax.transforms.rules.index import combining, dynamic_slice, gather, scatter

_EXTREME: Final[Rules[p.Combining]] = Rules(
    jvp=combining.extreme_jvp,
    transpose=NONLINEAR,
    batch=scatter.scatter_batch,
    split=Indivisible(),
    discharge=no_refs,
)

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        p.Gather,
        Rules(
            jvp=first_linear_jvp,
            transpose=gather.gather_transpose,
            batch=gather.gather_batch,
            split=Indivisible(),
            discharge=no_refs,
            sparse=True,
        ),
    )
    .extend(
        p.Scatter,
        Rules(
            jvp=scatter.update_jvp,
            transpose=scatter.scatter_transpose,
            batch=scatter.scatter_batch,
            split=Indivisible(),
            discharge=no_refs,
        ),
    )
    .extend(
        p.ScatterAdd,
        Rules(
            jvp=scatter.scatter_add_jvp,
            transpose=scatter.scatter_add_transpose,
            batch=scatter.scatter_batch,
            split=Indivisible(),
            discharge=no_refs,
        ),
    )
    .extend(
        p.ScatterMul,
        Rules(
            jvp=combining.mul_jvp,
            transpose=combining.mul_transpose,
            batch=scatter.scatter_batch,
            split=Indivisible(),
            discharge=no_refs,
        ),
    )
    .extend(p.ScatterMax, _EXTREME)
    .extend(p.ScatterMin, _EXTREME)
    .extend(
        p.DynamicSlice,
        Rules(
            jvp=first_linear_jvp,
            transpose=dynamic_slice.dynamic_slice_transpose,
            batch=dynamic_slice.dynamic_slice_batch,
            split=Indivisible(),
            discharge=no_refs,
            sparse=True,
        ),
    )
    .extend(
        p.DynamicUpdateSlice,
        Rules(
            jvp=scatter.update_jvp,
            transpose=dynamic_slice.dynamic_update_transpose,
            batch=dynamic_slice.dynamic_update_batch,
            split=Indivisible(),
            discharge=no_refs,
        ),
    )
)
