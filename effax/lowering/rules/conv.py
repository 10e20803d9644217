"""Lowering of convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.ir.dtypes import FLOAT32
from effax.ir.prims import ConvGeneralDilated
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import is_narrow
from effax.lowering.rules.contract import precision_of
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def convolution(w: Writer, prim: ConvGeneralDilated, ins: Sequence[Val]) -> Sequence[Val]:
    lhs, rhs = ins
    wanted = prim.preferred_element_type or lhs.type.dtype
    shape = (lhs.shape[0], rhs.shape[0], *prim.space(lhs.shape, rhs.shape))
    type_ = lhs.type.update(shape=shape, dtype=wanted, weak=False)
    if 0 in (*lhs.shape, *rhs.shape, *shape):
        return (w.constant(0, type_),)
    work = FLOAT32 if is_narrow(lhs.type.dtype) else np.promote_types(lhs.type.dtype, wanted)
    lhs, rhs = ops.convert(w, lhs, work), ops.convert(w, rhs, work)
    precision = precision_of(prim.precision, prim.name)
    space = ", ".join(map(str, range(len(prim.window_strides))))
    rest = f", {space}" if space else ""
    padding = ", ".join(ops.numbers(pair) for pair in prim.padding)
    window = (
        f"stride = {ops.numbers(prim.window_strides)}, pad = [{padding}], "
        f"lhs_dilate = {ops.numbers(prim.lhs_dilation)}, "
        f"rhs_dilate = {ops.numbers(prim.rhs_dilation)}"
    )
    settings = (
        f"batch_group_count = 1 : i64, feature_group_count = {prim.feature_group_count} : i64, "
        f"precision_config = [#stablehlo<precision {precision}>, #stablehlo<precision {precision}>]"
    )
    made = type_.update(dtype=work)
    axes = f"[b, f{rest}]x[o, i{rest}]->[b, f{rest}]"
    text = (
        f"stablehlo.convolution({lhs}, {rhs}) dim_numbers = {axes}, "
        f"window = {{{window}}} {{{settings}}} : {ops.signature([lhs, rhs], made)}"
    )
    return (ops.convert(w, w.op1(text, made), wanted),)


RULES: Final[LoweringRules] = NO_RULES.extend(ConvGeneralDilated, convolution)
