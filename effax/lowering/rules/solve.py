"""Lowering of solvers: a call of the function that solves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import LinearSolve, Root
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def solution(w: Writer, prim: LinearSolve | Root, ins: Sequence[Val]) -> Sequence[Val]:
    return w.call(prim.solve, ins, "solve")


RULES: Final[LoweringRules] = NO_RULES.extend(LinearSolve, solution).extend(Root, solution)
