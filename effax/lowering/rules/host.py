"""Lowering of callbacks: the compiled program calls their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import DceSink, DebugCallback, IoCallback, PureCallback
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def debug(w: Writer, prim: DebugCallback, ins: Sequence[Val]) -> Sequence[Val]:
    return w.host_call(prim.evaluate, ins, ())


def callback(w: Writer, prim: PureCallback | IoCallback, ins: Sequence[Val]) -> Sequence[Val]:
    return w.host_call(prim.evaluate, ins, prim.result_avals)


def sink(w: Writer, prim: DceSink, ins: Sequence[Val]) -> Sequence[Val]:
    return w.host_call(prim.evaluate, ins, ()) if prim.prevent_mlir_dce else ()


RULES: Final[LoweringRules] = (
    NO_RULES.extend(DebugCallback, debug)
    .extend(PureCallback, callback)
    .extend(IoCallback, callback)
    .extend(DceSink, sink)
)
