"""Elementwise comparison, extrema, and bitwise logic."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from effax.ir.prims.common import numpy_semantics as m
from effax.ir.prims.common.operands import (
    ANY,
    BITS,
    FLOATS,
    INTEGERS,
    KEYS,
    ORDERED,
    Binary,
    Elementwise,
    Meaning,
    Unary,
)

__all__ = [
    "And",
    "Clamp",
    "Eq",
    "Ge",
    "Gt",
    "IsFinite",
    "Le",
    "Lt",
    "Max",
    "Min",
    "Ne",
    "Not",
    "Or",
    "PopulationCount",
    "ShiftLeft",
    "ShiftRightArithmetic",
    "ShiftRightLogical",
    "Xor",
]


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


class IsFinite(Unary):
    """True where the operand is neither infinite nor nan."""

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
    """Bits moved up, with zeros below; 0 for a shift by the width or more."""

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
    """True where the operands are equal."""

    name = "eq"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ANY | KEYS
    predicate = True
    ufunc: ClassVar[Meaning] = m.equal


class Ne(Binary):
    """True where the operands differ."""

    name = "ne"
    commutes = True
    accepts: ClassVar[frozenset[str]] = ANY | KEYS
    predicate = True
    ufunc: ClassVar[Meaning] = m.not_equal


class Lt(Binary):
    """True where the first is less."""

    name = "lt"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.less


class Le(Binary):
    """True where the first is less or equal."""

    name = "le"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.less_equal


class Gt(Binary):
    """True where the first is greater."""

    name = "gt"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.greater


class Ge(Binary):
    """True where the first is greater or equal."""

    name = "ge"
    accepts: ClassVar[frozenset[str]] = ORDERED
    predicate = True
    ufunc: ClassVar[Meaning] = np.greater_equal
