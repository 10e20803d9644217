"""Lowering of calls with custom rules: the call without the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.errors import LoweringError
from effax.ir.prims import custom as c
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def call(
    w: Writer, prim: c.CustomJvp | c.CustomVjp | c.CustomVmap, ins: Sequence[Val]
) -> Sequence[Val]:
    return w.call(prim.call, ins, prim.label)


def linear(w: Writer, prim: c.CustomLinear, ins: Sequence[Val]) -> Sequence[Val]:
    if prim.forward is None:
        raise c.no_forward(LoweringError, prim.label)
    return w.call(prim.forward, ins, prim.label)


RULES: Final[LoweringRules] = (
    NO_RULES.extend(c.CustomJvp, call)
    .extend(c.CustomVjp, call)
    .extend(c.CustomLinear, linear)
    .extend(c.CustomVmap, call)
)
