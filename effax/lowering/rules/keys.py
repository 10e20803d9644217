"""Lowering of random bits. Keys are words here (``effax.lowering.physical``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import UINT32, as_dtype
from effax.ir.types import array_type
from effax.lowering import ops
from effax.lowering.mlir_text import tensor
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer

_STATE: Final = array_type((2,), as_dtype("uint64"))


def bits(w: Writer, prim: p.RngBitGenerator, ins: Sequence[Val]) -> Sequence[Val]:
    """Write XLA's generator, whose state is two words of 64 bits."""
    # Narrower integers are the lower bits of 32.
    drawn = array_type(prim.shape, prim.dtype if prim.dtype.itemsize >= 4 else UINT32)
    pairs = ops.reshape(w, ins[0], (2, 2))
    state = w.op1(
        f"stablehlo.bitcast_convert {pairs.name} : ({pairs.text}) -> {tensor(_STATE)}", _STATE
    )
    types = f"({state.text}) -> ({tensor(_STATE)}, {tensor(drawn)})"
    text = f"stablehlo.rng_bit_generator {state.name}, algorithm = DEFAULT : {types}"
    after, found = w.op(text, _STATE, drawn)
    words = w.op1(
        f"stablehlo.bitcast_convert {after.name} : ({after.text}) -> {pairs.text}", pairs.type
    )
    return (ops.reshape(w, words, (4,)), ops.convert(w, found, prim.dtype))


RULES: Final[LoweringRules] = NO_RULES.extend(p.RngBitGenerator, bits)
