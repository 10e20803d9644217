"""Lowering of selection, conversion, copies, and complex parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import (
    FLOAT32,
    as_dtype,
    family,
    is_complex,
    is_float,
    unsigned_of_subbyte,
)
from effax.lowering import ops
from effax.lowering.rules.common.complex_functions import joined
from effax.lowering.rules.common.pointwise import aligned, common_shape
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def identity(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
    return ins


def straight_through(w: Writer, prim: p.StraightThrough, ins: Sequence[Val]) -> Sequence[Val]:
    return ins[:1]


def real(w: Writer, prim: p.Real, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.real(w, ins[0]),)


def imag(w: Writer, prim: p.Imag, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.imag(w, ins[0]),)


def conj(w: Writer, prim: p.Conj, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    return (joined(w, ops.real(w, x), ops.same(w, "negate", ops.imag(w, x))),)


def complex_(w: Writer, prim: p.Complex, ins: Sequence[Val]) -> Sequence[Val]:
    return (joined(w, *aligned(w, ins)),)


def convert(w: Writer, prim: p.ConvertElementType, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if is_float(x.type.dtype) and unsigned_of_subbyte(x.type.dtype) is not None:
        # XLA takes the greatest float4 for one beyond all integers.
        x = ops.convert(w, x, FLOAT32)
    return (ops.convert(w, x, prim.new_dtype),)


def bitcast(w: Writer, prim: p.BitcastConvertType, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    before, after = x.type.dtype, prim.new_dtype
    if before == after:
        return (x,)
    if "bool" in (family(before), family(after)):
        # A boolean is a byte that is 0 or 1.
        return (ops.convert(w, ops.convert(w, x, as_dtype("uint8")), after),)
    if is_complex(before):
        bits = _bits_of_complex(w, x)
        return (bits if after == bits.type.dtype else ops.bitcast(w, bits, after),)
    if is_complex(after):
        return (_complex_of_bits(w, x),)
    return (ops.bitcast(w, x, after),)


def reduce_precision(w: Writer, prim: p.ReducePrecision, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    bits = f"e{prim.exponent_bits}m{prim.mantissa_bits}"
    return w.op(f"stablehlo.reduce_precision {x}, format = {bits} : {x.text}", x.type)


PART: Final = as_dtype("uint32")
BOTH: Final = as_dtype("uint64")


def _bits_of_complex(w: Writer, x: Val) -> Val:
    """Return a complex64 as uint64, with the real part in the lower bits, as in memory."""
    low, high = (
        ops.convert(w, ops.bitcast(w, part, PART), BOTH)
        for part in (ops.real(w, x), ops.imag(w, x))
    )
    return ops.same(w, "or", low, ops.same(w, "shift_left", high, ops.full(w, 32, high)))


def _complex_of_bits(w: Writer, x: Val) -> Val:
    bits = x if x.type.dtype == BOTH else ops.bitcast(w, x, BOTH)
    shifted = ops.same(w, "shift_right_logical", bits, ops.full(w, 32, bits))
    low, high = (ops.bitcast(w, ops.convert(w, x, PART), FLOAT32) for x in (bits, shifted))
    return joined(w, low, high)


def select_n(w: Writer, prim: p.SelectN, ins: Sequence[Val]) -> Sequence[Val]:
    which, *cases = ins
    shape = common_shape([*cases, which])
    cases = [w.repeat(c, shape) for c in cases]
    if len(cases) == 1:
        return (cases[0],)
    if family(which.type.dtype) == "bool":
        return (ops.select(w, which, cases[1], cases[0]),)
    return (_selected(w, which, cases, 0),)


def _selected(w: Writer, which: Val, cases: Sequence[Val], first: int) -> Val:
    """Return case ``which - first`` by binary search; an index out of range is clamped."""
    if len(cases) == 1:
        return cases[0]
    half = len(cases) // 2
    lower = ops.compare(w, "LT", which, ops.full(w, first + half, which))
    below = _selected(w, which, cases[:half], first)
    return ops.select(w, lower, below, _selected(w, which, cases[half:], first + half))


RULES: Final[LoweringRules] = (
    NO_RULES.extend(p.StopGradient, identity)
    .extend(p.StraightThrough, straight_through)
    .extend(p.Copy, identity)
    .extend(p.Real, real)
    .extend(p.Imag, imag)
    .extend(p.Conj, conj)
    .extend(p.Complex, complex_)
    .extend(p.ConvertElementType, convert)
    .extend(p.ReducePrecision, reduce_precision)
    .extend(p.BitcastConvertType, bitcast)
    .extend(p.SelectN, select_n)
)
