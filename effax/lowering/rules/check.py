"""Lowering of checks: the compiled program calls their evaluation, which raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import Check
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def lower_check(w: Writer, prim: Check, ins: Sequence[Val]) -> Sequence[Val]:
    return () if prim.debug else w.host_call(prim.evaluate, ins, ())


RULES: Final[LoweringRules] = NO_RULES.extend(Check, lower_check)
