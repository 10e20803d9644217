"""The rule set of references."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import refs as p
from effax.transforms.framework.rules import NO_RULES, Indivisible, Rules, RuleSet
from effax.transforms.rules.refs import discharge, jvp, transpose, vmap

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        p.NewRef,
        Rules(
            jvp=jvp.new_ref_jvp,
            transpose=transpose.new_ref_transpose,
            batch=vmap.new_ref_batch,
            split=Indivisible(),
            discharge=discharge.new_ref_discharge,
        ),
    )
    .extend(
        p.EmptyRef,
        Rules(
            jvp=jvp.empty_ref_jvp,
            transpose=transpose.empty_ref_transpose,
            batch=vmap.empty_ref_batch,
            split=Indivisible(),
            discharge=discharge.empty_ref_discharge,
        ),
    )
    .extend(
        p.Get,
        Rules(
            jvp=jvp.get_jvp,
            transpose=transpose.get_transpose,
            batch=vmap.get_batch,
            split=Indivisible(),
            discharge=discharge.get_discharge,
        ),
    )
    .extend(
        p.Swap,
        Rules(
            jvp=jvp.swap_jvp,
            transpose=transpose.swap_transpose,
            batch=vmap.swap_batch,
            split=Indivisible(),
            discharge=discharge.swap_discharge,
        ),
    )
    .extend(
        p.AddUpdate,
        Rules(
            jvp=jvp.add_update_jvp,
            transpose=transpose.add_update_transpose,
            batch=vmap.add_update_batch,
            split=Indivisible(),
            discharge=discharge.add_update_discharge,
        ),
    )
    .extend(
        p.Freeze,
        Rules(
            jvp=jvp.freeze_jvp,
            transpose=transpose.freeze_transpose,
            batch=vmap.freeze_batch,
            split=Indivisible(),
            discharge=discharge.freeze_discharge,
        ),
    )
    .extend(
        p.FreeRef,
        Rules(
            jvp=jvp.free_ref_jvp,
            transpose=transpose.free_ref_transpose,
            batch=vmap.free_ref_batch,
            split=Indivisible(),
            discharge=discharge.free_ref_discharge,
        ),
    )
)
