"""Arithmetic, rounding, comparison, and logic on bits, elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import is_inexact_dtype, real_dtype
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import meanings as m
from effax.ir.prims.operands import (
    ANY,
    BITS,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
    ORDERED,
    REALS,
    Binary,
    Elementwise,
    Meaning,
    Nullary,
    Unary,
    arrays,
    check_dtype,
)
from effax.ir.types import Type


class Neg(Unary):
    """The negative; of unsigned integers, modulo 2^bits."""

    name = "neg"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.negative


class Sign(Unary):
    """-1, 0 or 1; the operand itself where it is zero or nan. Of complex numbers, ``x / |x|``."""

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
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = m.square


class Abs(Nullary):
    """The magnitude; real for complex operands."""

    name = "abs"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, NUMBERS)
        return Typing((x.update(dtype=real_dtype(x.dtype)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.asarray(np.abs(ins[0])).astype(real_dtype(ins[0].dtype), copy=False),)


@dataclass(frozen=True, slots=True)
class IntegerPow(Primitive):
    """``x ** y`` for a constant integer ``y``."""

    y: int
    name: ClassVar[str] = "integer_pow"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, NUMBERS)
        if self.y < 0 and not is_inexact_dtype(x.dtype):
            raise IllTyped("integer_pow of integers takes no negative exponent", found=str(self.y))
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (m.integer_power(ins[0], self.y),)


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
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = np.multiply


class Div(Binary):
    """Division; of integers, it truncates toward zero."""

    name = "div"
    accepts: ClassVar[frozenset[str]] = NUMBERS
    ufunc: ClassVar[Meaning] = m.div


class Rem(Binary):
    """The remainder with the sign of the dividend."""

    name = "rem"
    accepts: ClassVar[frozenset[str]] = REALS
    ufunc: ClassVar[Meaning] = m.rem


class Pow(Binary):
    """Power of inexact operands; both have one dtype."""

    name = "pow"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.power


class Max(Binary):
    """The greater; nan where one is."""

    name = "max"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[Meaning] = m.maximum


class Min(Binary):
    """The lesser; nan where one is."""

    name = "min"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ORDERED
    ufunc: ClassVar[Meaning] = m.minimum


class Clamp(Elementwise):
    """``clamp(low, x, high)``: ``min(max(x, low), high)``."""

    name = "clamp"
    arity = 3
    accepts: ClassVar[frozenset[str]] = ORDERED

    ufunc: ClassVar[Meaning] = m.clamp


class Nextafter(Binary):
    """``nextafter(x, y)``: the float that follows ``x`` in the direction of ``y``."""

    name = "nextafter"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = m.nextafter


class IsFinite(Unary):
    """Whether the operand is neither infinite nor nan."""

    name = "is_finite"
    accepts: ClassVar[frozenset[str]] = FLOATS
    predicate = True
    ufunc: ClassVar[Meaning] = np.isfinite


class Not(Unary):
    """Bitwise (logical on booleans) complement."""

    name = "not"
    accepts: ClassVar[frozenset[str]] = BITS
    ufunc: ClassVar[Meaning] = np.invert


class And(Binary):
    """Bitwise (logical on booleans) conjunction."""

    name = "and"
    commutes = True
    accepts: ClassVar[frozenset[str]] = BITS
    ufunc: ClassVar[Meaning] = np.bitwise_and


class Or(Binary):
    """Bitwise (logical on booleans) disjunction."""

    name = "or"
    commutes = True
    accepts: ClassVar[frozenset[str]] = BITS
    ufunc: ClassVar[Meaning] = np.bitwise_or


class Xor(Binary):
    """Bitwise (logical on booleans) exclusive or."""

    name = "xor"
    commutes = True
    accepts: ClassVar[frozenset[str]] = BITS
    ufunc: ClassVar[Meaning] = np.bitwise_xor


class ShiftLeft(Binary):
    """Bits moved up, with zeros below; 0 from a shift by all bits on."""

    name = "shift_left"
    accepts: ClassVar[frozenset[str]] = INTEGERS
    ufunc: ClassVar[Meaning] = m.shift_left


class ShiftRightLogical(Binary):
    """Bits moved down, with zeros above."""

    name = "shift_right_logical"
    accepts: ClassVar[frozenset[str]] = INTEGERS
    ufunc: ClassVar[Meaning] = m.shift_right_logical


class ShiftRightArithmetic(Binary):
    """Bits moved down, with copies of the sign above."""

    name = "shift_right_arithmetic"
    accepts: ClassVar[frozenset[str]] = INTEGERS
    ufunc: ClassVar[Meaning] = m.shift_right_arithmetic


class PopulationCount(Unary):
    """The number of bits that are set."""

    name = "population_count"
    accepts: ClassVar[frozenset[str]] = INTEGERS
    ufunc: ClassVar[Meaning] = m.population_count


class Eq(Binary):
    """Whether the operands are equal."""

    name = "eq"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ANY
    predicate = True
    ufunc: ClassVar[Meaning] = np.equal


class Ne(Binary):
    """Whether the operands differ."""

    name = "ne"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ANY
    predicate = True
    ufunc: ClassVar[Meaning] = np.not_equal


class Lt(Binary):
    """Whether the first is less."""

    name = "lt"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.less


class Le(Binary):
    """Whether the first is less or equal."""

    name = "le"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.less_equal


class Gt(Binary):
    """Whether the first is greater."""

    name = "gt"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.greater


class Ge(Binary):
    """Whether the first is greater or equal."""

    name = "ge"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.greater_equal
