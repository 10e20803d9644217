"""The rules of calls that bring rules of their own."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, CustomVmap
from effax.transforms.framework.rules import NO_RULES, Indivisible, Rules, RuleSet
from effax.transforms.rules.custom import dce, jvp, linear, vmap

CUSTOM: Final[RuleSet] = (
    NO_RULES.extend(
        CustomJvp,
        Rules(
            jvp.custom_jvp_jvp,
            linear.custom_call_transpose,
            vmap.custom_jvp_batch,
            Indivisible(),
            linear.custom_call_discharge,
            dce=dce.dce_custom_jvp,
        ),
    )
    .extend(
        CustomVjp,
        Rules(
            jvp.custom_vjp_jvp,
            linear.custom_call_transpose,
            vmap.custom_vjp_batch,
            Indivisible(),
            linear.custom_call_discharge,
            dce=dce.dce_custom_vjp,
        ),
    )
    .extend(
        CustomVmap,
        Rules(
            jvp.custom_vmap_jvp,
            linear.custom_call_transpose,
            vmap.custom_vmap_batch,
            linear.custom_vmap_split,
            linear.custom_call_discharge,
            dce=dce.dce_custom_vmap,
        ),
    )
    .extend(
        CustomLinear,
        Rules(
            jvp.custom_linear_jvp,
            linear.custom_linear_transpose,
            vmap.custom_linear_batch,
            Indivisible(),
            linear.custom_linear_discharge,
            dce=dce.dce_custom_linear,
        ),
    )
)
