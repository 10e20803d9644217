"""Elementwise arithmetic and rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import real_dtype
from effax.ir.primitive import Typing, Value
from effax.ir.prims.common import numpy_semantics as m
from effax.ir.prims.common.operands import (
    FLOATS,
    NUMBERS,
    REALS,
    Binary,
    Meaning,
    Nullary,
    Unary,
    arrays,
    check_dtype,
)
from effax.ir.types import Type

__all__ = [
    "Abs",
    "Add",
    "Ceil",
    "Div",
    "Floor",
    "Mul",
    "Neg",
    "Nextafter",
    "Rem",
    "RoundEven",
    "Sign",
    "Square",
    "StrongZeroMul",
    "Sub",
]


class Neg(Unary):
    """The negative; of unsigned integers, modulo 2^bits."""

    name = "neg"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.negative


class Sign(Unary):
    """-1, 0 or 1; nan where the operand is. Of complex numbers, ``x / |x|``."""

    name = "sign"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = m.sign


class Floor(Unary):
    """Round toward negative infinity."""

    name = "floor"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.floor


class Ceil(Unary):
    """Round toward positive infinity."""

    name = "ceil"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.ceil


class RoundEven(Unary):
    """Round to nearest, ties to even."""

    name = "round"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.rint


class Square(Unary):
    """``x * x``."""

    name = "square"
    complex_flops = 6
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = m.square


class Abs(Nullary):
    """The magnitude; real for complex operands."""

    name = "abs"
    is_elementwise = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, NUMBERS)
        return Typing((x.update(dtype=real_dtype(x.dtype)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(np.abs(ins[0])).astype(real_dtype(ins[0].dtype), copy=False),)


class Add(Binary):
    """The sum; of integers, modulo 2^bits."""

    name = "add"
    commutes = True
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.add


class Sub(Binary):
    """The difference; of integers, modulo 2^bits."""

    name = "sub"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.subtract


class Mul(Binary):
    """The product; of integers, modulo 2^bits."""

    name = "mul"
    commutes = True
    complex_flops = 6
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.multiply


class StrongZeroMul(Binary):
    """The product, which is 0 where the first operand is 0, also beside infinities and nan.

    It is linear in the first operand, a tangent: a value that does not change at first order has
    the tangent 0 after a function of infinite slope.
    """

    name = "strong_zero_mul"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = m.strong_zero_mul


class Div(Binary):
    """Division; of integers, it truncates toward zero."""

    name = "div"
    complex_flops = 11
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = m.div


class Rem(Binary):
    """The remainder with the sign of the dividend."""

    name = "rem"
    accepts: ClassVar[frozenset[str]] = REALS
    ufunc: ClassVar[Meaning] = m.rem


class Nextafter(Binary):
    """``nextafter(x, y)``: the float that follows ``x`` in the direction of ``y``."""

    name = "nextafter"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = m.nextafter
