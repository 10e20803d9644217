"""Lowering of ``jit``: a call of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def jit(w: Writer, prim: p.Jit, ins: Sequence[Val]) -> Sequence[Val]:
    return w.call(prim.jaxpr, ins, prim.label)


RULES: Final[LoweringRules] = NO_RULES.extend(p.Jit, jit)
