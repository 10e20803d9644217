"""Lowering of complex functions that XLA's operations do not compute accurately.

XLA computes sines and cosines by exponentials, which cancel near the axes, and ignores the sign of
a zero, which selects the side of a branch cut. Its results at infinities and nan are corrected.

Source: W. Kahan, "Branch cuts for complex elementary functions" (1987); C99, annex G.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import as_dtype, complex_dtype, is_complex, real_dtype
from effax.lowering import ops
from effax.lowering.rules.common.pointwise import same_rule
from effax.lowering.writer import LoweringRule, Val, Writer

Parts = tuple[Val, Val]


def parts(w: Writer, x: Val) -> Parts:
    """Return the real and the imaginary part."""
    return ops.real(w, x), ops.imag(w, x)


def joined(w: Writer, x: Val, y: Val) -> Val:
    """Return ``x + i·y``; parts narrower than float32 are widened."""
    type_ = x.type.update(dtype=complex_dtype(x.type.dtype))
    part = real_dtype(type_.dtype)
    return ops.mapped(w, "complex", type_, ops.convert(w, x, part), ops.convert(w, y, part))


def absolute(w: Writer, x: Val) -> Val:
    """Return the magnitude, infinite if a part is; XLA returns nan if the other part is nan."""
    size = ops.mapped(w, "abs", x.type.update(dtype=real_dtype(x.type.dtype)), x)
    infinity = ops.full(w, math.inf, size)
    sizes = [ops.same(w, "abs", part) for part in parts(w, x)]
    infinite = [ops.compare(w, "EQ", part, infinity) for part in sizes]
    return ops.select(w, ops.same(w, "or", *infinite), infinity, size)


Formula = Callable[[Writer, Val, Val], Parts]


def _sin(w: Writer, a: Val, b: Val) -> Parts:
    """sin(a + i·b) = sin a·cosh b + i·cos a·sinh b."""
    return _product(w, "sine", a, "chlo.cosh", b), _product(w, "cosine", a, "chlo.sinh", b, True)


def _cos(w: Writer, a: Val, b: Val) -> Parts:
    """cos(a + i·b) = cos a·cosh b - i·sin a·sinh b."""
    imag = _product(w, "sine", a, "chlo.sinh", b)
    return _product(w, "cosine", a, "chlo.cosh", b, True), ops.same(w, "negate", imag)


def _sinh(w: Writer, a: Val, b: Val) -> Parts:
    """sinh(a + i·b) = sinh a·cos b + i·cosh a·sin b."""
    return _product(w, "cosine", b, "chlo.sinh", a, True), _product(w, "sine", b, "chlo.cosh", a)


def _cosh(w: Writer, a: Val, b: Val) -> Parts:
    """cosh(a + i·b) = cosh a·cos b + i·sinh a·sin b."""
    return _product(w, "cosine", b, "chlo.cosh", a, True), _product(w, "sine", b, "chlo.sinh", a)


def _product(w: Writer, f: str, x: Val, g: str, y: Val, infinite: bool = False) -> Val:
    """Return f(x)·g(y), where zero times infinity or nan is zero.

    The product of nan and infinity is infinite if ``infinite`` holds, as in annex G of C99.
    """
    first, second = ops.same(w, f, x), ops.same(w, g, y)
    product = ops.same(w, "multiply", first, second)
    lost = _is_nan(w, product)
    for factor, other in ((first, second), (second, first)):
        negative = ops.compare(w, "LT", other, ops.full(w, 0, other))
        zero = ops.select(w, negative, ops.same(w, "negate", factor), factor)
        product = ops.select(w, _both(w, lost, _equals(w, factor, 0)), zero, product)
    if infinite:
        product = ops.select(w, _both(w, _is_nan(w, first), _is_infinite(w, y)), second, product)
    return product


def _equals(w: Writer, x: Val, value: float) -> Val:
    return ops.compare(w, "EQ", x, ops.full(w, value, x))


def _is_infinite(w: Writer, x: Val) -> Val:
    return _equals(w, ops.same(w, "abs", x), math.inf)


def _is_nan(w: Writer, x: Val) -> Val:
    return ops.compare(w, "NE", x, x)


def _both(w: Writer, x: Val, y: Val) -> Val:
    return ops.same(w, "and", x, y)


def _either(w: Writer, x: Val, y: Val) -> Val:
    return ops.same(w, "or", x, y)


def _with_sign(w: Writer, x: Val, sign: Val) -> Val:
    """Return the magnitude of ``x`` with the sign of another number."""
    bits = ops.bitcast(w, sign, as_dtype(f"int{8 * sign.type.dtype.itemsize}"))
    size = ops.same(w, "abs", x)
    negative = ops.compare(w, "LT", bits, ops.full(w, 0, bits))
    return ops.select(w, negative, ops.same(w, "negate", size), size)


Correction = Callable[[Writer, Parts, Parts], Parts]
"""A function of the operand's parts and those of XLA's result: the parts by C99, annex G."""


def _exp(w: Writer, x: Parts, y: Parts) -> Parts:
    """exp(a + i·b), real on the real axis; 0 and inf + nan·i at infinite a if b has no cosine."""
    (a, b), (real, imag) = x, y
    zero, infinity = ops.full(w, 0, a), ops.full(w, math.inf, a)
    wave = ops.same(w, "subtract", b, b)  # nan where b has no cosine
    lost = _both(w, _is_nan(w, wave), _is_infinite(w, a))
    vanishes = _both(w, lost, ops.compare(w, "LT", a, zero))
    real = ops.select(w, vanishes, zero, ops.select(w, lost, infinity, real))
    imag = ops.select(w, vanishes, _with_sign(w, zero, b), ops.select(w, lost, wave, imag))
    return real, ops.select(w, _equals(w, b, 0), b, imag)


def _expm1(w: Writer, x: Parts, y: Parts) -> Parts:
    """exp(a + i·b) - 1, which is -1 where exp vanishes, and +0 at a zero of either sign."""
    (a, b), one = x, ops.full(w, 1, x[0])
    real, imag = _exp(w, x, y)
    vanishes = _both(w, _is_infinite(w, a), ops.compare(w, "LT", a, ops.full(w, 0, a)))
    real = ops.select(w, vanishes, ops.same(w, "negate", one), real)
    zero = ops.full(w, 0, a)
    return ops.select(w, _both(w, _equals(w, a, 0), _equals(w, b, 0)), zero, real), imag


def _log(w: Writer, x: Parts, y: Parts) -> Parts:
    """log(a + i·b), whose real part is infinite if a or b is."""
    far = _either(w, _is_infinite(w, x[0]), _is_infinite(w, x[1]))
    return ops.select(w, far, ops.full(w, math.inf, y[0]), y[0]), y[1]


def _sqrt(w: Writer, x: Parts, y: Parts) -> Parts:
    """√(a ± i·inf) = inf ± i·inf, √(inf + nan·i) = inf + nan·i, √(-inf + nan·i) = nan ± inf·i."""
    (a, b), (real, imag) = x, y
    infinity = ops.full(w, math.inf, a)
    far = _is_infinite(w, b)
    lost = _both(w, _is_nan(w, b), _is_infinite(w, a))
    positive = ops.compare(w, "GT", a, ops.full(w, 0, a))
    real = ops.select(w, _either(w, far, _both(w, lost, positive)), infinity, real)
    imag = ops.select(w, lost, ops.select(w, positive, b, infinity), imag)
    return real, _with_sign(w, ops.select(w, far, infinity, imag), b)


def _tanh(w: Writer, x: Parts, y: Parts) -> Parts:
    """tanh(a + i·b), real and imaginary on the axes, and ±1 at infinite a."""
    (a, b), (real, imag) = x, y
    far = _is_infinite(w, a)
    real = ops.select(w, far, _with_sign(w, ops.full(w, 1, a), a), real)
    imag = ops.select(w, far, _with_sign(w, ops.full(w, 0, b), b), imag)
    return (
        ops.select(w, _equals(w, a, 0), a, real),
        ops.select(w, _both(w, _equals(w, b, 0), ops.same(w, "not", far)), b, imag),
    )


def _tan(w: Writer, x: Parts, y: Parts) -> Parts:
    """tan z = -i·tanh(i·z)."""
    return _turned(w, _tanh, x, y)


def _turned(w: Writer, correction: Correction, x: Parts, y: Parts) -> Parts:
    """Return the correction of -i·f(i·z) by that of f."""
    real, imag = correction(w, *((ops.same(w, "negate", z[1]), z[0]) for z in (x, y)))
    return imag, ops.same(w, "negate", real)


def _odd(w: Writer, x: Parts, y: Parts) -> Parts:
    """Return parts with the signs of the operand's parts."""
    return _with_sign(w, y[0], x[0]), _with_sign(w, y[1], x[1])


def _asin(w: Writer, x: Parts, y: Parts) -> Parts:
    """asin(±0 + nan·i) = ±0 + nan·i."""
    real, imag = _odd(w, x, y)
    return ops.select(w, _both(w, _equals(w, x[0], 0), _is_nan(w, x[1])), x[0], real), imag


def _asinh(w: Writer, x: Parts, y: Parts) -> Parts:
    """asinh(nan ± 0·i) = nan ± 0·i."""
    real, imag = _odd(w, x, y)
    return real, ops.select(w, _both(w, _equals(w, x[1], 0), _is_nan(w, x[0])), x[1], imag)


def _acos(w: Writer, x: Parts, y: Parts) -> Parts:
    """acos(±0 + nan·i) = π/2 + nan·i; the sign of the imaginary part is opposite."""
    (a, b), real = x, y[0]
    level = _both(w, _equals(w, a, 0), _is_nan(w, b))
    real = ops.select(w, level, ops.full(w, math.pi / 2, a), real)
    return real, _with_sign(w, y[1], ops.same(w, "negate", b))


def _acosh(w: Writer, x: Parts, y: Parts) -> Parts:
    return y[0], _with_sign(w, y[1], x[1])


def _atanh(w: Writer, x: Parts, y: Parts) -> Parts:
    """atanh(nan + i·b) = nan + nan·i, and ±0 ± i·π/2 at infinite b; atanh(a + nan·i) has nan·i."""
    (a, b), (real, imag) = x, _odd(w, x, y)
    zero, quarter = ops.full(w, 0, a), ops.full(w, math.pi / 2, a)
    lost, far = _is_nan(w, a), _is_infinite(w, b)
    real = ops.select(w, lost, ops.select(w, far, _with_sign(w, zero, a), a), real)
    imag = ops.select(w, lost, ops.select(w, far, _with_sign(w, quarter, b), a), imag)
    lost = _is_nan(w, b)
    kept = ops.select(w, _is_infinite(w, a), _with_sign(w, zero, a), b)
    real = ops.select(w, lost, ops.select(w, _equals(w, a, 0), a, kept), real)
    return real, ops.select(w, lost, b, imag)


def _atan(w: Writer, x: Parts, y: Parts) -> Parts:
    """atan z = -i·atanh(i·z)."""
    return _turned(w, _atanh, x, y)


FORMULAS: Final[dict[type[p.Elementwise], tuple[str, Formula]]] = {
    p.Sin: ("sine", _sin),
    p.Cos: ("cosine", _cos),
    p.Sinh: ("chlo.sinh", _sinh),
    p.Cosh: ("chlo.cosh", _cosh),
}
"""The operation on real operands, and the formula of the complex function."""

CORRECTIONS: Final[dict[type[p.Elementwise], tuple[str, Correction]]] = {
    p.Exp: ("exponential", _exp),
    p.Expm1: ("exponential_minus_one", _expm1),
    p.Log: ("log", _log),
    p.Log1p: ("log_plus_one", _log),
    p.Sqrt: ("sqrt", _sqrt),
    p.Tan: ("tan", _tan),
    p.Tanh: ("tanh", _tanh),
    p.Asin: ("chlo.asin", _asin),
    p.Acos: ("chlo.acos", _acos),
    p.Atan: ("chlo.atan", _atan),
    p.Asinh: ("chlo.asinh", _asinh),
    p.Acosh: ("chlo.acosh", _acosh),
    p.Atanh: ("chlo.atanh", _atanh),
}
"""The operation, and what corrects its complex results at zeros, infinities and nan."""


def by_parts(prim: type[p.Elementwise]) -> LoweringRule[p.Elementwise]:
    """Return the rule of a primitive of :data:`FORMULAS`."""
    name, formula = FORMULAS[prim]
    plain = same_rule(name)

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        (x,) = ins
        if not is_complex(x.type.dtype):
            return plain(w, prim, ins)
        return (joined(w, *formula(w, *parts(w, x))),)

    return rule


def corrected(prim: type[p.Elementwise]) -> LoweringRule[p.Elementwise]:
    """Return the rule of a primitive of :data:`CORRECTIONS`."""
    name, _ = CORRECTIONS[prim]

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        (x,) = ins
        if is_complex(x.type.dtype):
            return (function(w, type(prim), x),)
        return (ops.same(w, name, x),)

    return rule


def function(w: Writer, prim: type[p.Elementwise], x: Val) -> Val:
    """Return the function of a complex number that a primitive of :data:`CORRECTIONS` computes."""
    name, correction = CORRECTIONS[prim]
    return joined(w, *correction(w, parts(w, x), parts(w, ops.same(w, name, x))))


def power(w: Writer, x: Val, y: Val) -> Val:
    """Return x^y; exp(y·log x) where a part of x or y is not finite, and 1 where y is 0.

    XLA computes 0^y = nan; it is 0 if re(y) > 0.
    """
    (a, b), (c, d) = parts(w, function(w, p.Log, x)), parts(w, y)
    ac, bd, ad, bc = (ops.same(w, "multiply", *z) for z in ((a, c), (b, d), (a, d), (b, c)))
    exponent = joined(w, ops.same(w, "subtract", ac, bd), ops.same(w, "add", ad, bc))
    size = ops.same(w, "add", absolute(w, x), absolute(w, y))
    wild = _either(w, _is_nan(w, size), _is_infinite(w, size))
    grows = ops.compare(w, "GT", c, ops.full(w, 0, c))
    vanishes = _both(w, _equals(w, x, 0), grows)
    power = ops.select(w, vanishes, ops.full(w, 0, x), ops.same(w, "power", x, y))
    power = _of_positive(w, x, y, power)
    power = ops.select(w, wild, function(w, p.Exp, exponent), power)
    return ops.select(w, _equals(w, y, 0), ops.full(w, 1, x), power)


def _of_positive(w: Writer, x: Val, y: Val, power: Val) -> Val:
    """Return the power with the sign of a zero imaginary part, as the evaluator's."""
    (a, b), (c, d) = parts(w, x), parts(w, y)
    zero = ops.full(w, 0, a)
    real = _both(w, _equals(w, b, 0), ops.compare(w, "GT", a, zero))
    real = _both(w, real, _either(w, _equals(w, d, 0), _equals(w, a, 1)))
    turn = ops.same(w, "multiply", c, b)
    turned = ops.same(w, "add", turn, ops.same(w, "multiply", d, zero))
    size, imag = parts(w, power)
    turn = ops.select(w, _equals(w, d, 0), turn, turned)
    return joined(w, size, ops.select(w, real, turn, imag))
