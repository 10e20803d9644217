"""Discharge of ``remat``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.jit.discharge import call_discharge


def remat_discharge(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Discharge as a call. Only values pass a barrier, so that contents are updated in place."""
    args = list(ins)
    if True in is_ref and prim.differentiated and prim.prevent_cse:
        values = [i for i, flag in enumerate(is_ref) if not flag]
        results = b.emit(OptimizationBarrier(), [args[i] for i in values]) if values else []
        for i, x in zip(values, results, strict=True):
            args[i] = x
        prim = replace(prim, prevent_cse=False)
    return call_discharge(b, prim, args, is_ref)
