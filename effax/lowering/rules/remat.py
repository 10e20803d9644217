"""Lowering of ``remat``, ``name`` and ``optimization_barrier``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def remat(w: Writer, prim: Remat, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a call; the barrier prevents CSE with the first computation."""
    apart = prim.differentiated and prim.prevent_cse
    return w.call(prim.jaxpr, barrier(w, OptimizationBarrier(), ins) if apart else ins, "remat")


def name(w: Writer, prim: Name, ins: Sequence[Val]) -> Sequence[Val]:
    return ins


def barrier(w: Writer, prim: OptimizationBarrier, ins: Sequence[Val]) -> Sequence[Val]:
    if not ins:
        return ()
    names, types = ", ".join([x.name for x in ins]), ", ".join([x.text for x in ins])
    return w.op(f"stablehlo.optimization_barrier {names} : {types}", *[x.type for x in ins])


RULES: Final[LoweringRules] = (
    NO_RULES.extend(Remat, remat).extend(Name, name).extend(OptimizationBarrier, barrier)
)
