"""Discharge of ``jit`` and ``remat``: a call of the discharged jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Jit, Remat
from effax.ir.syntax import Atom
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import DischargeOut, RuleBuilder
from effax.transforms.rules.common.arrays import placed


def call_discharge(
    b: RuleBuilder, prim: Jit | Remat, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    inner = discharge.cached(prim.jaxpr, b.rules)
    results = b.emit(replace(prim, jaxpr=inner.jaxpr), ins)
    new = results[inner.n_outs :]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))
