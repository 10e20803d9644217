"""Lowering of complex functions that XLA's operations do not compute accurately.

XLA computes sines and cosines by exponentials, which cancel near the axes, and ignores the sign of
a zero, which selects the side of a branch cut.

Source: W. Kahan, "Branch cuts for complex elementary functions" (1987).
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
    return _products(w, ("sine", a, "chlo.cosh", b), ("chlo.sinh", b, "cosine", a))


def _cos(w: Writer, a: Val, b: Val) -> Parts:
    """cos(a + i·b) = cos a·cosh b - i·sin a·sinh b."""
    real, imag = _products(w, ("cosine", a, "chlo.cosh", b), ("sine", a, "chlo.sinh", b))
    return real, ops.same(w, "negate", imag)


def _sinh(w: Writer, a: Val, b: Val) -> Parts:
    """sinh(a + i·b) = sinh a·cos b + i·cosh a·sin b."""
    return _products(w, ("chlo.sinh", a, "cosine", b), ("sine", b, "chlo.cosh", a))


def _cosh(w: Writer, a: Val, b: Val) -> Parts:
    """cosh(a + i·b) = cosh a·cos b + i·sinh a·sin b."""
    return _products(w, ("chlo.cosh", a, "cosine", b), ("chlo.sinh", a, "sine", b))


def _products(w: Writer, *factors: tuple[str, Val, str, Val]) -> Parts:
    """Return two products f(x)·g(y), where zero times infinity or nan is zero."""
    made = []
    for f, x, g, y in factors:
        first, second = ops.same(w, f, x), ops.same(w, g, y)
        product = ops.same(w, "multiply", first, second)
        lost = ops.compare(w, "NE", product, product)
        for factor in (first, second):
            is_zero = ops.compare(w, "EQ", factor, ops.full(w, 0, factor))
            product = ops.select(w, ops.same(w, "and", lost, is_zero), factor, product)
        made.append(product)
    return made[0], made[1]


FORMULAS: Final[dict[type[p.Elementwise], tuple[str, Formula]]] = {
    p.Sin: ("sine", _sin),
    p.Cos: ("cosine", _cos),
    p.Sinh: ("chlo.sinh", _sinh),
    p.Cosh: ("chlo.cosh", _cosh),
}
"""The operation on real operands, and the formula of the complex function."""

SIGNS: Final[dict[type[p.Elementwise], tuple[str, int, bool]]] = {
    p.Sqrt: ("sqrt", 1, False),
    p.Asin: ("chlo.asin", 1, False),
    p.Acos: ("chlo.acos", 1, True),
    p.Atan: ("chlo.atan", 0, False),
    p.Asinh: ("chlo.asinh", 0, False),
    p.Acosh: ("chlo.acosh", 1, False),
    p.Atanh: ("chlo.atanh", 1, False),
}
"""The operation, the part whose sign the operand's part determines, and whether it is opposite."""


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


def on_its_branch(prim: type[p.Elementwise]) -> LoweringRule[p.Elementwise]:
    """Return the rule of a primitive of :data:`SIGNS`."""
    name, place, opposite = SIGNS[prim]
    plain = same_rule(name)

    def rule(w: Writer, prim: p.Elementwise, ins: Sequence[Val]) -> Sequence[Val]:
        found = plain(w, prim, ins)
        if not is_complex(ins[0].type.dtype):
            return found
        made = list(parts(w, found[0]))
        sign = parts(w, ins[0])[place]
        made[place] = _with_sign(w, made[place], ops.same(w, "negate", sign) if opposite else sign)
        return (joined(w, *made),)

    return rule


def _with_sign(w: Writer, x: Val, sign: Val) -> Val:
    """Return the magnitude of ``x`` with the sign of another number."""
    bits = ops.bitcast(w, sign, as_dtype(f"int{8 * sign.type.dtype.itemsize}"))
    size = ops.same(w, "abs", x)
    negative = ops.compare(w, "LT", bits, ops.full(w, 0, bits))
    return ops.select(w, negative, ops.same(w, "negate", size), size)
