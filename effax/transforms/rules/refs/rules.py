"""The rules of references, put together."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import refs as p
from effax.transforms.framework.rules import NO_RULES, Indivisible, Rules, RuleSet
from effax.transforms.rules.refs import discharge, jvp, transpose, vmap

REFS: Final[RuleSet] = (
    NO_RULES.extend(
        p.NewRef,
        Rules(
            jvp.new_ref_jvp,
            transpose.new_ref_transpose,
            vmap.new_ref_batch,
            Indivisible(),
            discharge.new_ref_discharge,
        ),
    )
    .extend(
        p.EmptyRef,
        Rules(
            jvp.empty_ref_jvp,
            transpose.empty_ref_transpose,
            vmap.empty_ref_batch,
            Indivisible(),
            discharge.empty_ref_discharge,
        ),
    )
    .extend(
        p.Get,
        Rules(
            jvp.get_jvp,
            transpose.get_transpose,
            vmap.get_batch,
            Indivisible(),
            discharge.get_discharge,
        ),
    )
    .extend(
        p.Swap,
        Rules(
            jvp.swap_jvp,
            transpose.swap_transpose,
            vmap.swap_batch,
            Indivisible(),
            discharge.swap_discharge,
        ),
    )
    .extend(
        p.AddUpdate,
        Rules(
            jvp.add_update_jvp,
            transpose.add_update_transpose,
            vmap.add_update_batch,
            Indivisible(),
            discharge.add_update_discharge,
        ),
    )
    .extend(
        p.Freeze,
        Rules(
            jvp.freeze_jvp,
            transpose.freeze_transpose,
            vmap.freeze_batch,
            Indivisible(),
            discharge.freeze_discharge,
        ),
    )
    .extend(
        p.FreeRef,
        Rules(
            jvp.free_ref_jvp,
            transpose.free_ref_transpose,
            vmap.free_ref_batch,
            Indivisible(),
            discharge.free_ref_discharge,
        ),
    )
)
