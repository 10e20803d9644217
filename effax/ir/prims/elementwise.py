"""Elementwise primitives: arithmetic, comparison, logic, mathematics, selection, conversion.

Operands have one dtype and one shape; an operand without axes goes with any shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from effax.effects import Rule
from effax.ir.dtypes import (
    BOOL,
    DType,
    complex_dtype,
    family,
    is_complex,
    is_float,
    is_inexact_dtype,
    real_dtype,
)
from effax.ir.errors import IllTyped, RefError
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.types import ArrayType, Shape, Type, array_type

NUMBERS = frozenset({"int", "uint", "float", "complex"})
REALS = frozenset({"int", "uint", "float"})
ORDERED = frozenset({"bool", "int", "uint", "float"})
INEXACT = frozenset({"float", "complex"})
FLOATS = frozenset({"float"})
INTEGERS = frozenset({"int", "uint"})
BITS = frozenset({"bool", "int", "uint"})
ANY = frozenset({"bool", "int", "uint", "float", "complex", "void"})


class Nullary(Primitive):
    """A primitive without parameters: one object, so that equality is identity."""

    __slots__ = ()
    _instance: ClassVar[Primitive | None] = None

    def __new__(cls) -> Self:
        if "_instance" not in cls.__dict__:
            cls._instance = super().__new__(cls)
        assert isinstance(cls._instance, cls)
        return cls._instance

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def as_array(prim: Primitive, index: int, type_: Type) -> ArrayType:
    """The operand's type, which must be an array's. Raises RefError for a reference."""
    if isinstance(type_, ArrayType):
        return type_
    error = RefError(
        f"{prim.name} takes arrays, and operand {index} is a reference",
        expected="an array",
        found=str(type_),
        remedy=Rule.REF_AS_ARRAY.remedy,
    )
    error.rule = Rule.REF_AS_ARRAY.code
    raise error


def arrays(prim: Primitive, types: Sequence[Type], count: int | None = None) -> list[ArrayType]:
    """All operands' types, as arrays and as many as ``count``. Raises IllTyped."""
    if count is not None and len(types) != count:
        raise IllTyped(
            f"{prim.name} has the wrong number of operands",
            expected=str(count),
            found=str(len(types)),
        )
    return [as_array(prim, i, t) for i, t in enumerate(types)]


def check_dtype(prim: Primitive, type_: ArrayType, accepts: frozenset[str]) -> None:
    """Raises IllTyped unless the dtype is of an accepted family."""
    if family(type_.dtype) not in accepts:
        raise IllTyped(
            f"{prim.name} does not take this dtype",
            expected=" or ".join(sorted(accepts)),
            found=str(type_),
            remedy="convert the operand first",
        )


def common_shape(prim: Primitive, types: Sequence[ArrayType]) -> Shape:
    """The one shape of the operands, scalars aside. Raises IllTyped where there are two."""
    shape: Shape = ()
    for type_ in types:
        if type_.shape and shape and type_.shape != shape:
            raise IllTyped(
                f"{prim.name} has operands of different shape",
                expected="equal shapes, or scalars",
                found=", ".join(map(str, types)),
                remedy="broadcast the operands first",
            )
        shape = type_.shape or shape
    return shape


def check_same_dtype(prim: Primitive, types: Sequence[ArrayType]) -> None:
    """Raises IllTyped unless all operands have one dtype."""
    if any(t.dtype != types[0].dtype for t in types):
        raise IllTyped(
            f"{prim.name} has operands of different dtype",
            expected="equal dtypes",
            found=", ".join(map(str, types)),
            remedy="convert the operands first",
        )


class Elementwise(Nullary):
    """``arity`` operands of one dtype and shape; the result has the same, or is boolean."""

    __slots__ = ()
    arity: ClassVar[int]
    accepts: ClassVar[frozenset[str]]
    predicate: ClassVar[bool] = False
    ufunc: ClassVar[Callable[..., Value]]

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins, self.arity)
        check_dtype(self, types[0], self.accepts)
        check_same_dtype(self, types)
        shape = common_shape(self, types)
        if self.predicate:
            return Typing((array_type(shape, BOOL),))
        weak = all(t.weak for t in types)
        return Typing((array_type(shape, types[0].dtype, weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (type(self).ufunc(*ins),)


class Unary(Elementwise):
    """One operand."""

    __slots__ = ()
    arity = 1


class Binary(Elementwise):
    """Two operands."""

    __slots__ = ()
    arity = 2


def _in_floats(scalar: Callable[[float], float]) -> Callable[[Value], Value]:
    """An elementwise function from a function of Python floats."""
    lifted = np.frompyfunc(scalar, 1, 1)

    def apply(x: Value) -> Value:
        return np.asarray(lifted(np.asarray(x, np.float64))).astype(x.dtype)

    return apply


def _safe(scalar: Callable[[float], float], limit: float) -> Callable[[float], float]:
    def guarded(x: float) -> float:
        try:
            return scalar(x)
        except OverflowError:
            return limit

    return guarded


def _logistic(x: Value) -> Value:
    one = np.asarray(1, x.dtype)
    return one / (one + np.exp(-x))


def _sign(x: Value) -> Value:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, x, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _truncated_div(x: Value, y: Value) -> Value:
    if is_inexact_dtype(x.dtype):
        return np.true_divide(x, y).astype(x.dtype, copy=False)
    # Integer division truncates, gives -1 for a zero divisor, and wraps at the least integer.
    if x.dtype.kind == "u":
        most = np.asarray(np.iinfo(x.dtype).max, x.dtype)
        return np.where(y == 0, most, x // np.where(y == 0, 1, y).astype(x.dtype))
    safe = np.where((y == 0) | (y == -1), np.asarray(1, x.dtype), y)
    quotient = x // safe
    inexact = (quotient * safe != x) & ((x < 0) != (safe < 0))
    truncated = quotient + inexact.astype(x.dtype)
    result = np.where(y == 0, np.asarray(-1, x.dtype), np.where(y == -1, -x, truncated))
    return result.astype(x.dtype, copy=False)


def _truncated_rem(x: Value, y: Value) -> Value:
    if is_inexact_dtype(x.dtype):
        return np.fmod(x, y).astype(x.dtype, copy=False)
    # A zero divisor gives back the dividend, as in StableHLO.
    safe = np.where((y == 0) | (y == -1), np.asarray(1, x.dtype), y).astype(x.dtype)
    rest = np.where(y == 0, x, np.fmod(x, safe))
    return rest.astype(x.dtype, copy=False)


def _power(x: Value, y: Value) -> Value:
    return np.power(x, y).astype(x.dtype, copy=False)


def _maximum(x: Value, y: Value) -> Value:
    return np.logical_or(x, y) if x.dtype.kind == "b" else np.maximum(x, y)


def _minimum(x: Value, y: Value) -> Value:
    return np.logical_and(x, y) if x.dtype.kind == "b" else np.minimum(x, y)


def _shift_left(x: Value, y: Value) -> Value:
    bits = x.dtype.itemsize * 8
    big = (y < 0) | (y >= bits) if y.dtype.kind == "i" else y >= bits
    return np.where(big, 0, np.left_shift(x, np.where(big, 0, y).astype(x.dtype))).astype(x.dtype)


def _shift_right_arithmetic(x: Value, y: Value) -> Value:
    bits = x.dtype.itemsize * 8
    big = (y < 0) | (y >= bits) if y.dtype.kind == "i" else y >= bits
    steps = np.where(big, bits - 1, y).astype(x.dtype)
    return np.right_shift(x.view(f"i{x.dtype.itemsize}"), steps.astype(f"i{x.dtype.itemsize}")).view(
        x.dtype
    )


def _shift_right_logical(x: Value, y: Value) -> Value:
    bits = x.dtype.itemsize * 8
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    big = (y < 0) | (y >= bits) if y.dtype.kind == "i" else y >= bits
    steps = np.where(big, 0, y).astype(unsigned)
    shifted = np.right_shift(np.asarray(x).view(unsigned), steps)
    return np.where(big, 0, shifted).astype(unsigned).view(x.dtype)


def _population_count(x: Value) -> Value:
    return np.bitwise_count(np.asarray(x).view(f"u{x.dtype.itemsize}")).astype(x.dtype)


class Neg(Unary):
    name = "neg"
    accepts = NUMBERS
    ufunc = np.negative


class Sign(Unary):
    name = "sign"
    accepts = NUMBERS
    ufunc = _sign


class Floor(Unary):
    name = "floor"
    accepts = FLOATS
    ufunc = np.floor


class Ceil(Unary):
    name = "ceil"
    accepts = FLOATS
    ufunc = np.ceil


class RoundEven(Unary):
    """Round to nearest, ties to even."""

    name = "round"
    accepts = FLOATS
    ufunc = np.rint


class Exp(Unary):
    name = "exp"
    accepts = INEXACT
    ufunc = np.exp


class Exp2(Unary):
    name = "exp2"
    accepts = INEXACT
    ufunc = np.exp2


class Expm1(Unary):
    name = "expm1"
    accepts = INEXACT
    ufunc = np.expm1


class Log(Unary):
    name = "log"
    accepts = INEXACT
    ufunc = np.log


class Log1p(Unary):
    name = "log1p"
    accepts = INEXACT
    ufunc = np.log1p


class Sqrt(Unary):
    name = "sqrt"
    accepts = INEXACT
    ufunc = np.sqrt


def _rsqrt(x: Value) -> Value:
    return (np.asarray(1, x.dtype) / np.sqrt(x)).astype(x.dtype, copy=False)


class Rsqrt(Unary):
    name = "rsqrt"
    accepts = INEXACT
    ufunc = _rsqrt


class Cbrt(Unary):
    name = "cbrt"
    accepts = FLOATS
    ufunc = np.cbrt


class Square(Unary):
    name = "square"
    accepts = NUMBERS
    ufunc = np.square


class Sin(Unary):
    name = "sin"
    accepts = INEXACT
    ufunc = np.sin


class Cos(Unary):
    name = "cos"
    accepts = INEXACT
    ufunc = np.cos


class Tan(Unary):
    name = "tan"
    accepts = INEXACT
    ufunc = np.tan


class Asin(Unary):
    name = "asin"
    accepts = INEXACT
    ufunc = np.arcsin


class Acos(Unary):
    name = "acos"
    accepts = INEXACT
    ufunc = np.arccos


class Atan(Unary):
    name = "atan"
    accepts = INEXACT
    ufunc = np.arctan


class Sinh(Unary):
    name = "sinh"
    accepts = INEXACT
    ufunc = np.sinh


class Cosh(Unary):
    name = "cosh"
    accepts = INEXACT
    ufunc = np.cosh


class Tanh(Unary):
    name = "tanh"
    accepts = INEXACT
    ufunc = np.tanh


class Asinh(Unary):
    name = "asinh"
    accepts = INEXACT
    ufunc = np.arcsinh


class Acosh(Unary):
    name = "acosh"
    accepts = INEXACT
    ufunc = np.arccosh


class Atanh(Unary):
    name = "atanh"
    accepts = INEXACT
    ufunc = np.arctanh


class Logistic(Unary):
    name = "logistic"
    accepts = INEXACT
    ufunc = _logistic


class Erf(Unary):
    name = "erf"
    accepts = FLOATS
    ufunc = _in_floats(_safe(math.erf, 1.0))


class Erfc(Unary):
    name = "erfc"
    accepts = FLOATS
    ufunc = _in_floats(_safe(math.erfc, 0.0))


class IsFinite(Unary):
    name = "is_finite"
    accepts = FLOATS
    predicate = True
    ufunc = np.isfinite


class Not(Unary):
    """Bitwise (logical on booleans) complement."""

    name = "not"
    accepts = BITS
    ufunc = np.invert


class PopulationCount(Unary):
    name = "population_count"
    accepts = INTEGERS
    ufunc = _population_count


class StopGradient(Unary):
    """The identity, with a derivative of zero."""

    name = "stop_gradient"
    accepts = ANY
    ufunc = np.asarray


class Copy(Unary):
    """The identity, kept apart so that a result has memory of its own."""

    name = "copy"
    accepts = ANY
    ufunc = np.array


class Add(Binary):
    name = "add"
    accepts = NUMBERS
    ufunc = np.add


class Sub(Binary):
    name = "sub"
    accepts = NUMBERS
    ufunc = np.subtract


class Mul(Binary):
    name = "mul"
    accepts = NUMBERS
    ufunc = np.multiply


class Div(Binary):
    """Division; of integers, it truncates toward zero."""

    name = "div"
    accepts = NUMBERS
    ufunc = _truncated_div


class Rem(Binary):
    """The remainder with the sign of the dividend."""

    name = "rem"
    accepts = REALS
    ufunc = _truncated_rem


class Pow(Binary):
    """Power of inexact operands; both have one dtype."""

    name = "pow"
    accepts = INEXACT
    ufunc = _power


class Max(Binary):
    name = "max"
    accepts = ORDERED
    ufunc = _maximum


class Min(Binary):
    name = "min"
    accepts = ORDERED
    ufunc = _minimum


class Atan2(Binary):
    name = "atan2"
    accepts = FLOATS
    ufunc = np.arctan2


class Nextafter(Binary):
    name = "nextafter"
    accepts = FLOATS
    ufunc = np.nextafter


class And(Binary):
    name = "and"
    accepts = BITS
    ufunc = np.bitwise_and


class Or(Binary):
    name = "or"
    accepts = BITS
    ufunc = np.bitwise_or


class Xor(Binary):
    name = "xor"
    accepts = BITS
    ufunc = np.bitwise_xor


class ShiftLeft(Binary):
    name = "shift_left"
    accepts = INTEGERS
    ufunc = _shift_left


class ShiftRightLogical(Binary):
    name = "shift_right_logical"
    accepts = INTEGERS
    ufunc = _shift_right_logical


class ShiftRightArithmetic(Binary):
    name = "shift_right_arithmetic"
    accepts = INTEGERS
    ufunc = _shift_right_arithmetic


class Eq(Binary):
    name = "eq"
    accepts = ANY
    predicate = True
    ufunc = np.equal


class Ne(Binary):
    name = "ne"
    accepts = ANY
    predicate = True
    ufunc = np.not_equal


class Lt(Binary):
    name = "lt"
    accepts = ORDERED
    predicate = True
    ufunc = np.less


class Le(Binary):
    name = "le"
    accepts = ORDERED
    predicate = True
    ufunc = np.less_equal


class Gt(Binary):
    name = "gt"
    accepts = ORDERED
    predicate = True
    ufunc = np.greater


class Ge(Binary):
    name = "ge"
    accepts = ORDERED
    predicate = True
    ufunc = np.greater_equal


class Clamp(Elementwise):
    """``clamp(low, x, high)``: ``min(max(x, low), high)``."""

    name = "clamp"
    arity = 3
    accepts = ORDERED

    def evaluate(self, low: Value, x: Value, high: Value) -> Sequence[Value]:  # type: ignore[override]  # arity is 3
        return (_minimum(_maximum(x, low), high),)


class Abs(Nullary):
    """The magnitude; real for complex operands."""

    name = "abs"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, NUMBERS)
        return Typing((x.update(dtype=real_dtype(x.dtype)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.abs(ins[0]),)


class _Part(Nullary):
    __slots__ = ()

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
    accepts = frozenset({"complex"})
    ufunc = np.conj


class Complex(Nullary):
    """A complex number from its real and imaginary part."""

    name = "complex"

    def typing(self, *ins: Type) -> Typing:
        types = arrays(self, ins, 2)
        check_same_dtype(self, types)
        if not is_float(types[0].dtype):
            check_dtype(self, types[0], FLOATS)
        shape = common_shape(self, types)
        return Typing((array_type(shape, complex_dtype(types[0].dtype)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        real, imaginary = ins
        made = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), complex_dtype(real.dtype))
        made.real, made.imag = real, imaginary
        return (made,)


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
        x = ins[0]
        if self.y >= 0:
            return (np.power(x, np.asarray(self.y, _exponent_dtype(x.dtype))).astype(x.dtype, copy=False),)
        base = np.power(x, np.asarray(-self.y, _exponent_dtype(x.dtype)))
        return ((np.asarray(1, x.dtype) / base).astype(x.dtype, copy=False),)


def _exponent_dtype(dtype: DType) -> DType:
    return dtype


@dataclass(frozen=True, slots=True)
class ConvertElementType(Primitive):
    """The operand in another dtype: floats truncate to integers, anything nonzero is true."""

    new_dtype: DType
    weak_type: bool = False
    name: ClassVar[str] = "convert_element_type"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        if is_complex(x.dtype) and not is_complex(self.new_dtype):
            if family(self.new_dtype) != "bool":
                raise IllTyped(
                    "convert_element_type takes no complex operand to a real dtype",
                    expected="a complex dtype",
                    found=str(self.new_dtype),
                    remedy="take `real` or `imag` first",
                )
        return Typing((array_type(x.shape, self.new_dtype, self.weak_type),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        with np.errstate(invalid="ignore", over="ignore"):
            return (_converted(np.asarray(ins[0]), self.new_dtype),)


def _converted(x: Value, dtype: DType) -> Value:
    """XLA's conversion: floats saturate into integers, and nan becomes 0."""
    if family(dtype) in ("int", "uint") and is_float(x.dtype):
        wide = x.astype(np.float64)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        inside = np.clip(np.trunc(np.nan_to_num(wide, nan=0.0, posinf=high, neginf=low)), low, high)
        exact = np.where(inside >= float(high), 0, inside).astype(dtype)
        return np.where(inside >= float(high), np.asarray(high, dtype), exact)
    return x.astype(dtype)


@dataclass(frozen=True, slots=True)
class BitcastConvertType(Primitive):
    """The operand's bits read as another dtype of the same width."""

    new_dtype: DType
    name: ClassVar[str] = "bitcast_convert_type"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        if x.dtype.itemsize != self.new_dtype.itemsize or "void" in (
            family(x.dtype),
            family(self.new_dtype),
        ):
            raise IllTyped(
                "bitcast_convert_type takes dtypes of one width",
                expected=f"{x.dtype.itemsize * 8} bits",
                found=f"{self.new_dtype} ({self.new_dtype.itemsize * 8} bits)",
            )
        return Typing((array_type(x.shape, self.new_dtype),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.ascontiguousarray(ins[0]).reshape(ins[0].shape).view(self.new_dtype),)


class SelectN(Nullary):
    """``select_n(which, *cases)``: elementwise ``cases[which]``.

    ``which`` is boolean for two cases, else int32; it has the shape of the cases or none.
    """

    name = "select_n"

    def typing(self, *ins: Type) -> Typing:
        which, *cases = arrays(self, ins)
        if not cases:
            raise IllTyped("select_n has no cases", expected="at least one case", found="none")
        wanted = ("bool",) if len(cases) == 2 else ("bool", "int", "uint")
        if family(which.dtype) not in wanted and which.dtype.name != "int32":
            raise IllTyped(
                "select_n selects with a boolean or int32",
                expected="bool or i32",
                found=str(which),
            )
        if family(which.dtype) == "bool" and len(cases) > 2:
            raise IllTyped("select_n has too many cases for a boolean", found=str(len(cases)))
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
        return (np.take_along_axis(stacked, index[None], axis=0)[0],)
