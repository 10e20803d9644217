"""Lowering of ``jit`` and ``composite``: calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.lowering.mlir_text import quoted
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def jit(w: Writer, prim: p.Jit, ins: Sequence[Val]) -> Sequence[Val]:
    return w.call(prim.jaxpr, ins, prim.label)


def composite(w: Writer, prim: p.Composite, ins: Sequence[Val]) -> Sequence[Val]:
    if prim.jaxpr.effects:
        return jit(w, prim, ins)
    named = f"composite_attributes = {{{prim.attributes}}}, " if prim.attributes else ""
    version = f", version = {prim.version} : i32" if prim.version else ""
    head = f"stablehlo.composite {quoted(prim.label)}"
    return w.call(
        prim.jaxpr,
        ins,
        prim.label,
        lambda symbol, names: f"{head} {names} {{{named}decomposition = @{symbol}{version}}}",
    )


RULES: Final[LoweringRules] = NO_RULES.extend(p.Jit, jit).extend(p.Composite, composite)
