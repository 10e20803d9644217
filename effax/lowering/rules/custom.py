"""Lowering of calls with rules of their own: what is left of them is the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.errors import LoweringError
from effax.ir.prims import LinearSolve, Root
from effax.ir.prims import custom as c
from effax.lowering.writer import NO_RULES, Val, Writer


def call(
    w: Writer, prim: c.CustomJvp | c.CustomVjp | c.CustomVmap, ins: Sequence[Val]
) -> Sequence[Val]:
    return w.call(prim.call, ins, prim.label)


def solution(w: Writer, prim: LinearSolve | Root, ins: Sequence[Val]) -> Sequence[Val]:
    return w.call(prim.solve, ins, "solve")


def linear(w: Writer, prim: c.CustomLinear, ins: Sequence[Val]) -> Sequence[Val]:
    if prim.forward is None:
        raise c.no_forward(LoweringError, prim.label)
    return w.call(prim.forward, ins, prim.label)


CUSTOM: Final = (
    NO_RULES.extend(c.CustomJvp, call)
    .extend(c.CustomVjp, call)
    .extend(c.CustomLinear, linear)
    .extend(LinearSolve, solution)
    .extend(Root, solution)
    .extend(c.CustomVmap, call)
)
