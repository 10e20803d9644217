"""Lowering of exponential, trigonometric and other elementary functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import (
    FLOAT32,
    is_complex,
)
from effax.lowering import ops
from effax.lowering.rules.common import complex_functions
from effax.lowering.rules.common.complex_functions import (
    CORRECTIONS,
    FORMULAS,
    by_parts,
    corrected,
    joined,
    parts,
)
from effax.lowering.rules.common.pointwise import aligned, is_narrow, same_rules
from effax.lowering.writer import LoweringRules, Val, Writer

OPERATIONS: Final[dict[type[p.Elementwise], str]] = {
    p.Magnitude: "sqrt",
    p.Rsqrt: "rsqrt",
    p.Cbrt: "cbrt",
    p.Logistic: "logistic",
    p.Erf: "chlo.erf",
    p.Atan2: "atan2",
}


LOG_2: Final = 0.6931471805599453


def exp2(w: Writer, prim: p.Exp2, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if is_complex(x.type.dtype):
        # 2^x = exp(x·log 2)
        scaled = [ops.same(w, "multiply", y, ops.full(w, LOG_2, y)) for y in parts(w, x)]
        return (complex_functions.function(w, p.Exp, joined(w, *scaled)),)
    # A power is exact if the exponent is an integer; exp(x·log 2) is not.
    return (ops.same(w, "power", ops.full(w, 2, x), x),)


def pow_(w: Writer, prim: p.Pow, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    if is_complex(x.type.dtype):
        return (complex_functions.power(w, x, y),)
    return (ops.same(w, "power", x, y),)


def integer_pow(w: Writer, prim: p.IntegerPow, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    dtype = x.type.dtype
    wide = ops.convert(w, x, FLOAT32) if is_narrow(dtype) else x
    power = _powered(w, wide, abs(prim.y))
    if prim.y < 0:
        power = ops.same(w, "divide", ops.full(w, 1, wide), power)
    return (ops.convert(w, power, dtype),)


def _powered(w: Writer, x: Val, n: int) -> Val:
    """Return x^n by repeated squaring, in about log2(n) multiplications."""
    power: Val | None = None
    while n:
        if n % 2:
            power = x if power is None else ops.same(w, "multiply", power, x)
        n //= 2
        if n:
            x = ops.same(w, "multiply", x, x)
    return ops.full(w, 1, x) if power is None else power


def erfc(w: Writer, prim: p.Erfc, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    dtype = x.type.dtype
    # XLA has no erfc of floats of 8 bits.
    wide = ops.convert(w, x, FLOAT32) if dtype.itemsize == 1 else x
    return (ops.convert(w, ops.same(w, "chlo.erfc", wide), dtype),)


def _complex_rules(rules: LoweringRules) -> LoweringRules:
    for prim in FORMULAS:
        rules = rules.extend(prim, by_parts(prim))
    for prim in CORRECTIONS:
        rules = rules.extend(prim, corrected(prim))
    return rules


RULES: Final[LoweringRules] = (
    _complex_rules(same_rules(OPERATIONS))
    .extend(p.Exp2, exp2)
    .extend(p.Erfc, erfc)
    .extend(p.Pow, pow_)
    .extend(p.IntegerPow, integer_pow)
)
