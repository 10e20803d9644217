"""Complex parts, conversion of dtypes, selection of elements, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import BOOL, INT32, DType, complex_dtype, family, real_dtype, width
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common import numpy_semantics as m
from effax.ir.prims.common.operands import (
    ANY,
    FLOATS,
    INEXACT,
    KEYS,
    OPAQUE,
    Meaning,
    Nullary,
    Unary,
    arrays,
    check_dtype,
    check_same_dtype,
    common_shape,
)
from effax.ir.types import Type, array_type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "BitcastConvertType",
    "Complex",
    "Conj",
    "ConvertElementType",
    "Copy",
    "Imag",
    "Real",
    "ReducePrecision",
    "SelectN",
    "StopGradient",
    "StraightThrough",
]


class _Part(Nullary):
    """A real part of a complex operand."""

    __slots__ = ()
    is_elementwise = True
    flops_per_element = 0

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, frozenset({"complex"}))
        return Typing((x.update(dtype=real_dtype(x.dtype)),))


class Real(_Part):
    """The real part of a complex operand."""

    name = "real"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.real(ins[0]),)


class Imag(_Part):
    """The imaginary part of a complex operand."""

    name = "imag"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.imag(ins[0]),)


class Conj(Unary):
    """The complex conjugate."""

    name = "conj"
    accepts: ClassVar[frozenset[str]] = frozenset({"complex"})
    ufunc: ClassVar[Meaning] = np.conj


class Complex(Nullary):
    """A complex number from its real and imaginary part."""

    name = "complex"
    is_elementwise = True
    flops_per_element = 0

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins, 2)
        check_same_dtype(self, types)
        if types[0].dtype.name not in ("float32", "float64"):
            raise IllTyped(
                "complex numbers have parts of 32 or 64 bits",
                expected="f32 or f64",
                found=str(types[0]),
                remedy="convert the parts first",
            )
        shape = common_shape(self, types)
        return Typing((array_type(shape, complex_dtype(types[0].dtype)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        real, imaginary = ins
        made = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), complex_dtype(real.dtype))
        made.real, made.imag = real, imaginary
        return (made,)


@dataclass(frozen=True, slots=True)
class ConvertElementType(Primitive):
    """The operand in another dtype: floats truncate to integers, nonzero numbers are true."""

    new_dtype: DType
    weak_type: bool = False
    name: ClassVar[str] = "convert_element_type"
    is_elementwise: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        have, want = family(x.dtype), family(self.new_dtype)
        if not {"void", "key"}.isdisjoint((have, want)):
            raise IllTyped(
                "convert_element_type takes numbers and booleans",
                found=f"{x}, new_dtype={self.new_dtype}",
                remedy=OPAQUE if "key" in (have, want) else None,
            )
        if have == "complex" and want not in ("complex", "bool"):
            raise IllTyped(
                "convert_element_type does not convert complex numbers to a real dtype",
                expected="a complex dtype",
                found=str(self.new_dtype),
                remedy="take `real` or `imag` first",
            )
        return Typing((array_type(x.shape, self.new_dtype, self.weak_type),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (m.convert(np.asarray(ins[0]), self.new_dtype),)


@dataclass(frozen=True, slots=True)
class BitcastConvertType(Primitive):
    """The operand's bits read as another dtype of the same width."""

    new_dtype: DType
    name: ClassVar[str] = "bitcast_convert_type"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        opaque = not {"void", "key"}.isdisjoint((family(x.dtype), family(self.new_dtype)))
        if width(x.dtype) != width(self.new_dtype) or opaque:
            raise IllTyped(
                "bitcast_convert_type takes dtypes of one width",
                expected=f"{width(x.dtype)} bits",
                found=f"{self.new_dtype} ({width(self.new_dtype)} bits)",
                remedy=OPAQUE if family(x.dtype) == "key" else None,
            )
        return Typing((array_type(x.shape, self.new_dtype),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.ascontiguousarray(ins[0]).reshape(ins[0].shape).view(self.new_dtype),)


@dataclass(frozen=True, slots=True)
class ReducePrecision(Primitive):
    """The operand rounded, to nearest even, to floats of fewer bits, in its dtype.

    What is beyond the exponent is infinite, or zero: there are no subnormal numbers.
    """

    exponent_bits: int
    mantissa_bits: int
    name: ClassVar[str] = "reduce_precision"
    is_elementwise: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, FLOATS)
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise IllTyped(
                "reduce_precision to too few bits",
                expected="at least 1 exponent bit, and no negative number of mantissa bits",
                found=f"{self.exponent_bits} and {self.mantissa_bits}",
            )
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (m.reduced(np.asarray(ins[0]), self.exponent_bits, self.mantissa_bits),)


class SelectN(Nullary):
    """``select_n(which, *cases)``: elementwise ``cases[which]``.

    ``which`` is boolean for two cases, or int32, clamped to the number of cases; it has the shape
    of the cases or is a scalar.
    """

    name = "select_n"
    is_elementwise = True

    def typing(self, *ins: Type) -> Typing:
        which, *cases = arrays(self, ins, least=2)
        if which.dtype not in (BOOL, INT32) or (which.dtype == BOOL and len(cases) > 2):
            raise IllTyped(
                "select_n selects with an int32, or a boolean of two cases",
                expected="i32" if len(cases) > 2 else "bool or i32",
                found=str(which),
            )
        check_same_dtype(self, cases)
        shape = common_shape(self, cases)
        if which.shape and which.shape != shape:
            if shape:
                common_shape(self, [which, *cases])
            shape = which.shape
        weak = all(c.weak for c in cases)
        return Typing((array_type(shape, cases[0].dtype, weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        which, *cases = ins
        if len(cases) == 2 and which.dtype.kind == "b":
            return (np.where(which, cases[1], cases[0]),)
        shape = np.broadcast_shapes(which.shape, *(c.shape for c in cases))
        index = np.clip(np.broadcast_to(which, shape).astype(np.int64), 0, len(cases) - 1)
        stacked = np.stack([np.broadcast_to(c, shape) for c in cases])
        return (np.asarray(np.take_along_axis(stacked, index[None], axis=0)[0]),)


class StopGradient(Unary):
    """The identity, with a derivative of zero."""

    name = "stop_gradient"
    is_view = True
    accepts: ClassVar[frozenset[str]] = ANY | KEYS
    ufunc: ClassVar[Meaning] = np.asarray


class StraightThrough(Nullary):
    """``straight_through(x, y)``: the value of ``x``, with the derivative of ``y``."""

    name = "straight_through"
    is_view = True

    def typing(self, *ins: Type) -> Typing:
        x, y = arrays(self, ins, 2)
        check_dtype(self, x, INEXACT)
        check_same_dtype(self, (x, y))
        if x.shape != y.shape:
            raise IllTyped(
                "straight_through has operands of different shape", expected=str(x), found=str(y)
            )
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (ins[0],)


class Copy(Unary):
    """The identity, whose result has its own buffer."""

    name = "copy"
    flops_per_element = 0
    accepts: ClassVar[frozenset[str]] = ANY | KEYS
    ufunc: ClassVar[Meaning] = np.array
