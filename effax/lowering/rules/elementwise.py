"""Lowering of elementwise primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import (
    BOOL,
    FLOAT32,
    DType,
    as_dtype,
    complex_dtype,
    family,
    is_complex,
    is_integer,
    real_dtype,
)
from effax.ir.prims.reduce import greatest
from effax.ir.types import Shape
from effax.lowering import ops
from effax.lowering.mlir_text import tensor
from effax.lowering.writer import NO_RULES, LoweringRules, Rule, Val, Writer

LOG_2: Final = 0.6931471805599453

SAME: Final[dict[type[p.Elementwise], str]] = {
    p.Neg: "negate",
    p.Floor: "floor",
    p.Ceil: "ceil",
    p.RoundEven: "round_nearest_even",
    p.Exp: "exponential",
    p.Expm1: "exponential_minus_one",
    p.Log: "log",
    p.Log1p: "log_plus_one",
    p.Sqrt: "sqrt",
    p.Rsqrt: "rsqrt",
    p.Cbrt: "cbrt",
    p.Sin: "sine",
    p.Cos: "cosine",
    p.Tan: "tan",
    p.Asin: "chlo.asin",
    p.Acos: "chlo.acos",
    p.Atan: "chlo.atan",
    p.Sinh: "chlo.sinh",
    p.Cosh: "chlo.cosh",
    p.Tanh: "tanh",
    p.Asinh: "chlo.asinh",
    p.Acosh: "chlo.acosh",
    p.Atanh: "chlo.atanh",
    p.Logistic: "logistic",
    p.Erf: "chlo.erf",
    p.Erfc: "chlo.erfc",
    p.Not: "not",
    p.PopulationCount: "popcnt",
    p.Add: "add",
    p.Sub: "subtract",
    p.Mul: "multiply",
    p.Rem: "remainder",
    p.Atan2: "atan2",
    p.Nextafter: "chlo.next_after",
    p.And: "and",
    p.Or: "or",
    p.Xor: "xor",
    p.ShiftLeft: "shift_left",
    p.ShiftRightLogical: "shift_right_logical",
    p.ShiftRightArithmetic: "shift_right_arithmetic",
}

COMPARISONS: Final[dict[type[p.Elementwise], str]] = {
    p.Eq: "EQ",
    p.Ne: "NE",
    p.Lt: "LT",
    p.Le: "LE",
    p.Gt: "GT",
    p.Ge: "GE",
}


def is_narrow(dtype: DType) -> bool:
    """Whether the dtype is a float of fewer than 32 bits, which is accumulated in float32."""
    return family(dtype) == "float" and dtype.itemsize < 4


def common_shape(xs: Sequence[Val]) -> Shape:
    """The shape that is not a scalar's, if there is one."""
    return next((x.shape for x in xs if x.shape), ())


def aligned(w: Writer, xs: Sequence[Val]) -> list[Val]:
    """The operands in one shape: scalars repeat."""
    shape = common_shape(xs)
    return [w.repeat(x, shape) for x in xs]


def same_rule(name: str) -> Rule[p.Elementwise]:
    """The rule of a primitive that is one operation, on operands of one type."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        return (ops.same(w, name, *aligned(w, ins)),)

    return rule


def comparison_rule(direction: str) -> Rule[p.Elementwise]:
    """The rule of a comparison."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        x, y = aligned(w, ins)
        return (ops.compare(w, direction, x, y),)

    return rule


def extreme_rule(name: str, of_booleans: str) -> Rule[p.Elementwise]:
    """The rule of max or min."""

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        x, y = aligned(w, ins)
        return (ops.same(w, of_booleans if family(x.type.dtype) == "bool" else name, x, y),)

    return rule


def identity(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
    return ins


def sign(w: Writer, prim: p.Sign, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if family(x.type.dtype) == "uint":
        return (ops.same(w, "minimum", x, ops.full(w, 1, x)),)
    return (ops.same(w, "sign", x),)


def exp2(w: Writer, prim: p.Exp2, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if is_complex(x.type.dtype):
        # 2^x = exp(x·log 2)
        scaled = ops.same(w, "multiply", x, ops.full(w, LOG_2, x))
        return (ops.same(w, "exponential", scaled),)
    # A power is exact where the exponent is an integer.
    return (ops.same(w, "power", ops.full(w, 2, x), x),)


def div(w: Writer, prim: p.Div, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    quotient = ops.same(w, "divide", x, y)
    if not is_integer(x.type.dtype):
        return (quotient,)
    # x / 0 = -1 (all bits) on every backend, but XLA makes x / x a constant 1 before.
    by_zero = ops.compare(w, "EQ", y, ops.full(w, 0, y))
    ones = ops.full(w, -1 if family(x.type.dtype) == "int" else greatest(x.type.dtype), x)
    return (ops.select(w, by_zero, ones, quotient),)


def pow_(w: Writer, prim: p.Pow, ins: Sequence[Val]) -> Sequence[Val]:
    x, y = aligned(w, ins)
    power = ops.same(w, "power", x, y)
    if not is_complex(x.type.dtype):
        return (power,)
    # XLA has 0^y = nan where y is not real.
    exponent = ops.real(w, y)
    grows = ops.compare(w, "GT", exponent, ops.full(w, 0, exponent))
    is_zero = ops.compare(w, "EQ", x, ops.full(w, 0, x))
    return (ops.select(w, ops.same(w, "and", is_zero, grows), ops.full(w, 0, x), power),)


def square(w: Writer, prim: p.Square, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.same(w, "multiply", ins[0], ins[0]),)


def is_finite(w: Writer, prim: p.IsFinite, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    return (ops.mapped(w, "is_finite", x.type.update(dtype=BOOL), x),)


def clamp(w: Writer, prim: p.Clamp, ins: Sequence[Val]) -> Sequence[Val]:
    shape = common_shape(ins)
    low, x, high = ins
    x = w.repeat(x, shape)
    if family(x.type.dtype) == "bool":
        at_least = ops.same(w, "or", x, w.repeat(low, shape))
        return (ops.same(w, "and", at_least, w.repeat(high, shape)),)
    return (ops.mapped(w, "clamp", x.type, low, x, high),)


def absolute(w: Writer, prim: p.Abs, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    if family(x.type.dtype) == "uint":
        return (x,)
    return (ops.mapped(w, "abs", x.type.update(dtype=real_dtype(x.type.dtype)), x),)


def real(w: Writer, prim: p.Real, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.real(w, ins[0]),)


def imag(w: Writer, prim: p.Imag, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.imag(w, ins[0]),)


def joined(w: Writer, x: Val, y: Val) -> Val:
    """``x + i·y``; parts narrower than float32 are widened."""
    type_ = x.type.update(dtype=complex_dtype(x.type.dtype))
    part = real_dtype(type_.dtype)
    x, y = ops.convert(w, x, part), ops.convert(w, y, part)
    return w.op1(f"stablehlo.complex {x}, {y} : {tensor(type_)}", type_)


def conj(w: Writer, prim: p.Conj, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    return (joined(w, ops.real(w, x), ops.same(w, "negate", ops.imag(w, x))),)


def complex_(w: Writer, prim: p.Complex, ins: Sequence[Val]) -> Sequence[Val]:
    return (joined(w, *aligned(w, ins)),)


def integer_pow(w: Writer, prim: p.IntegerPow, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    dtype = x.type.dtype
    wide = ops.convert(w, x, FLOAT32) if is_narrow(dtype) else x
    power = _powered(w, wide, abs(prim.y))
    if prim.y < 0:
        power = ops.same(w, "divide", ops.full(w, 1, wide), power)
    return (ops.convert(w, power, dtype),)


def _powered(w: Writer, x: Val, n: int) -> Val:
    """x^n by squaring: about log n multiplications."""
    power: Val | None = None
    while n:
        if n % 2:
            power = x if power is None else ops.same(w, "multiply", power, x)
        n //= 2
        if n:
            x = ops.same(w, "multiply", x, x)
    return ops.full(w, 1, x) if power is None else power


def convert(w: Writer, prim: p.ConvertElementType, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.convert(w, ins[0], prim.new_dtype),)


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


HALF: Final = as_dtype("uint32")
BOTH: Final = as_dtype("uint64")


def _bits_of_complex(w: Writer, x: Val) -> Val:
    """A complex64 as uint64, the real part in the lower half, as it is in memory."""
    low, high = (
        ops.convert(w, ops.bitcast(w, part, HALF), BOTH)
        for part in (ops.real(w, x), ops.imag(w, x))
    )
    return ops.same(w, "or", low, ops.same(w, "shift_left", high, ops.full(w, 32, high)))


def _complex_of_bits(w: Writer, x: Val) -> Val:
    bits = x if x.type.dtype == BOTH else ops.bitcast(w, x, BOTH)
    shifted = ops.same(w, "shift_right_logical", bits, ops.full(w, 32, bits))
    low, high = (ops.bitcast(w, ops.convert(w, half, HALF), FLOAT32) for half in (bits, shifted))
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
    """The case of number ``which - first``, by halving; numbers outside give the nearest one."""
    if len(cases) == 1:
        return cases[0]
    half = len(cases) // 2
    lower = ops.compare(w, "LT", which, ops.full(w, first + half, which))
    below = _selected(w, which, cases[:half], first)
    return ops.select(w, lower, below, _selected(w, which, cases[half:], first + half))


def _rules() -> LoweringRules:
    rules = NO_RULES
    for prim, name in SAME.items():
        rules = rules.extend(prim, same_rule(name))
    for prim, direction in COMPARISONS.items():
        rules = rules.extend(prim, comparison_rule(direction))
    for prim in (p.StopGradient, p.Copy):
        rules = rules.extend(prim, identity)
    return (
        rules.extend(p.Max, extreme_rule("maximum", "or"))
        .extend(p.Min, extreme_rule("minimum", "and"))
        .extend(p.Sign, sign)
        .extend(p.Exp2, exp2)
        .extend(p.Div, div)
        .extend(p.Pow, pow_)
        .extend(p.Square, square)
        .extend(p.IsFinite, is_finite)
        .extend(p.Clamp, clamp)
        .extend(p.Abs, absolute)
        .extend(p.Real, real)
        .extend(p.Imag, imag)
        .extend(p.Conj, conj)
        .extend(p.Complex, complex_)
        .extend(p.IntegerPow, integer_pow)
        .extend(p.ConvertElementType, convert)
        .extend(p.BitcastConvertType, bitcast)
        .extend(p.SelectN, select_n)
    )


ELEMENTWISE: Final = _rules()
