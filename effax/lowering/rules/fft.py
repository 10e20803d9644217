"""Lowering of Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import Fft
from effax.ir.types import ArrayType
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def fft(w: Writer, prim: Fft, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    (type_,) = prim.typing(x.type).outs
    assert isinstance(type_, ArrayType)
    if x.type.size == 0:
        return (w.constant(0, type_),)
    kind, lengths = prim.fft_type.name, ops.numbers(prim.fft_lengths)
    text = f"stablehlo.fft {x}, type = {kind}, length = {lengths} : {ops.signature(ins, type_)}"
    return (w.op1(text, type_),)


RULES: Final[LoweringRules] = NO_RULES.extend(Fft, fft)
