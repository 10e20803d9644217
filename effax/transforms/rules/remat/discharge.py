"""Discharge of ``remat``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import (
    DischargeOut,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import placed


def remat_discharge(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """The program is discharged. Contents are not held back by a barrier: they stay in place."""
    inner = discharge.cached(prim.jaxpr, b.rules)
    made = replace(prim, jaxpr=inner.jaxpr)
    args = list(ins)
    if True in is_ref and prim.differentiated and prim.prevent_cse:
        values = [i for i, flag in enumerate(is_ref) if not flag]
        held = b.emit(OptimizationBarrier(), [args[i] for i in values]) if values else []
        for i, x in zip(values, held, strict=True):
            args[i] = x
        made = replace(made, prevent_cse=False)
    results = b.emit(made, args)
    new = results[inner.n_outs :]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))
