"""The rule set of calls with custom rules."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, CustomVmap
from effax.transforms.framework.rules import NO_RULES, Indivisible, Rules, RuleSet
from effax.transforms.rules.custom import (
    dce,
    discharge,
    jvp,
    partial_eval,
    pvary,
    transpose,
    vmap,
)

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        CustomJvp,
        Rules(
            jvp=jvp.custom_jvp_jvp,
            transpose=transpose.custom_call_transpose,
            batch=vmap.custom_jvp_batch,
            split=Indivisible(),
            discharge=discharge.custom_call_discharge,
            dce=dce.dce_custom_jvp,
            pvary=pvary.custom_jvp_pvary,
        ),
    )
    .extend(
        CustomVjp,
        Rules(
            jvp=jvp.custom_vjp_jvp,
            transpose=transpose.custom_call_transpose,
            batch=vmap.custom_vjp_batch,
            split=Indivisible(),
            discharge=discharge.custom_call_discharge,
            dce=dce.dce_custom_vjp,
            pvary=pvary.custom_vjp_pvary,
        ),
    )
    .extend(
        CustomVmap,
        Rules(
            jvp=jvp.custom_vmap_jvp,
            transpose=transpose.custom_call_transpose,
            batch=vmap.custom_vmap_batch,
            split=partial_eval.custom_vmap_split,
            discharge=discharge.custom_call_discharge,
            dce=dce.dce_custom_vmap,
        ),
    )
    .extend(
        CustomLinear,
        Rules(
            jvp=jvp.custom_linear_jvp,
            transpose=transpose.custom_linear_transpose,
            batch=vmap.custom_linear_batch,
            split=Indivisible(),
            discharge=discharge.custom_linear_discharge,
            dce=dce.dce_custom_linear,
        ),
    )
)
