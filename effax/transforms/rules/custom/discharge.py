"""Discharge of calls with custom rules."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.errors import TransformError
from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, CustomVmap, Jit
from effax.ir.syntax import Atom
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import (
    DischargeOut,
    RuleBuilder,
)
from effax.transforms.rules.jit.discharge import call_discharge


def custom_call_discharge(
    b: RuleBuilder,
    prim: CustomJvp | CustomVjp | CustomVmap,
    ins: Sequence[Atom],
    is_ref: Sequence[bool],
) -> DischargeOut:
    """Discharge the call and drop its rules: no transformation follows a discharge."""
    return call_discharge(b, Jit(prim.call, prim.label), ins, is_ref)


def custom_linear_discharge(
    b: RuleBuilder, prim: CustomLinear, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Keep the equation, which accesses no reference operand before it is transposed.

    With a forward program and references it is a call of that program.
    """
    if any(is_ref):
        if prim.forward is not None:
            return call_discharge(b, Jit(prim.forward, prim.label), ins, is_ref)
        raise TransformError(f"{prim.label}: its backward rule uses references; transpose first")
    programs = [discharge.cached(jaxpr, b.rules).jaxpr for jaxpr in prim.subjaxprs()]
    return DischargeOut(b.emit(prim.with_subjaxprs(programs), ins), [None] * len(ins))
