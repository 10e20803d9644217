"""Lowering of arithmetic and rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import (
    family,
    is_complex,
    is_integer,
)
from effax.ir.prims.reduce import greatest
from effax.lowering import ops
from effax.lowering.rules.common import complex_functions
from effax.lowering.rules.common.pointwise import aligned, same_rules
from effax.lowering.writer import LoweringRules, Val, Writer

OPERATIONS: Final[dict[type[p.Elementwise], str]] = {
    p.Neg: "negate",
    p.Floor: "floor",
    p.Ceil: "ceil",
    p.RoundEven: "round_nearest_even",
    p.Add: "add",
    p.Sub: "subtract",
    p.Mul: "multiply",
    p.Nextafter: "chlo.next_after",
}


def sign(w: Writer, prim: p.Sign, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if family(x.type.dtype) == "uint":
        return (ops.same(w, "minimum", x, ops.full(w, 1, x)),)
    zero = ops.full(w, 0, x)
    # XLA returns -0 for -0.
    return (ops.select(w, ops.compare(w, "EQ", x, zero), zero, ops.same(w, "sign", x)),)


def div(w: Writer, prim: p.Div, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    quotient = ops.same(w, "divide", x, y)
    if not is_integer(x.type.dtype):
        return (quotient,)
    # x / 0 = -1 (all bits) on every backend, but XLA first folds x / x to 1.
    by_zero = ops.compare(w, "EQ", y, ops.full(w, 0, y))
    ones = ops.full(w, -1 if family(x.type.dtype) == "int" else greatest(x.type.dtype), x)
    return (ops.select(w, by_zero, ones, quotient),)


def strong_zero_mul(w: Writer, prim: p.StrongZeroMul, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    zero = ops.full(w, 0, x)
    is_zero = ops.compare(w, "EQ", x, zero)
    return (ops.select(w, is_zero, zero, ops.same(w, "multiply", x, y)),)


def rem(w: Writer, prim: p.Rem, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    if not is_integer(x.type.dtype):
        return (ops.same(w, "remainder", x, y),)
    # x rem 0 = x on every backend, but XLA traps where it folds constants.
    by_zero = ops.compare(w, "EQ", y, ops.full(w, 0, y))
    rest = ops.same(w, "remainder", x, ops.select(w, by_zero, ops.full(w, 1, y), y))
    return (ops.select(w, by_zero, x, rest),)


def square(w: Writer, prim: p.Square, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.same(w, "multiply", ins[0], ins[0]),)


def absolute(w: Writer, prim: p.Abs, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if family(x.type.dtype) == "uint":
        return (x,)
    if is_complex(x.type.dtype):
        return (complex_functions.absolute(w, x),)
    return (ops.same(w, "abs", x),)


RULES: Final[LoweringRules] = (
    same_rules(OPERATIONS)
    .extend(p.Sign, sign)
    .extend(p.Square, square)
    .extend(p.Abs, absolute)
    .extend(p.Div, div)
    .extend(p.Rem, rem)
    .extend(p.StrongZeroMul, strong_zero_mul)
)
