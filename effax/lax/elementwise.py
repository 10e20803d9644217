"""Elementwise primitives under JAX's names: dtypes must agree, nothing is promoted.

Python numbers take the dtype of the other operands; operands without axes go with any shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

from effax import tree
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import (
    Array,
    ArrayLike,
    DTypeLike,
    as_value,
    is_python_scalar,
    not_an_array,
    python_kind,
)
from effax.arrays.ref import Ref
from effax.ir import prims as p
from effax.ir.dtypes import FAMILY_RANKS, DType, family, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.syntax import Lit, Scalar
from effax.ir.types import array_type
from effax.numpy import promotion as pr

__all__ = [
    "RoundingMethod", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh",
    "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt",
    "ceil", "clamp", "complex", "conj", "convert_element_type", "cos", "cosh", "div", "eq",
    "erf", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag", "integer_pow",
    "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg",
    "nextafter", "population_count", "pow", "real", "reciprocal", "rem", "round", "rsqrt",
    "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh",
]  # fmt: skip

T = TypeVar("T")
UnaryFunction = Callable[[ArrayLike], Array]
BinaryFunction = Callable[[ArrayLike, ArrayLike], Array]


def operands(what: str, *xs: ArrayLike) -> list[Array | Lit]:
    """Operands in the one dtype that they must have.

    Raises:
        IllTyped: one is no array, or a Python number would lose its kind in that dtype.
    """
    values = [x if is_python_scalar(x) else as_value(x, f"an operand of {what}") for x in xs]
    arrays = [x for x in values if isinstance(x, Array)]
    if not arrays:
        dtype, weak = pr.common_dtype(values, what)
    else:
        dtype, weak = arrays[0].dtype, arrays[0].weak_type
    return [x if isinstance(x, Array) else _constant(x, dtype, weak, what) for x in values]


def _constant(x: Scalar, dtype: DType, weak: bool, what: str) -> Lit:
    if FAMILY_RANKS[family(allowed(python_kind(x)))] > FAMILY_RANKS[family(dtype)]:
        raise IllTyped(
            f"{what} takes operands of one dtype",
            expected=f"a number that is a {dtype}",
            found=f"{type(x).__name__}: {x}",
            remedy="convert the array with `convert_element_type`, or use `effax.numpy`",
        )
    return pr.literal(x, array_type((), dtype, weak))


def _unary(prim: Primitive, name: str, doc: str) -> UnaryFunction:
    def function(x: ArrayLike) -> Array:
        if isinstance(x, Array):
            return bind1(prim, x)
        return bind1(prim, *operands(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _binary(prim: Primitive, name: str, doc: str) -> BinaryFunction:
    def function(x: ArrayLike, y: ArrayLike) -> Array:
        if isinstance(x, Array) and isinstance(y, Array):
            return bind1(prim, x, y)
        return bind1(prim, *operands(name, x, y))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


add: Final[BinaryFunction] = _binary(p.Add(), "add", "x + y.")
sub: Final[BinaryFunction] = _binary(p.Sub(), "sub", "x - y.")
mul: Final[BinaryFunction] = _binary(p.Mul(), "mul", "x · y.")
div: Final[BinaryFunction] = _binary(p.Div(), "div", "x / y; of integers, rounded towards 0.")
rem: Final[BinaryFunction] = _binary(p.Rem(), "rem", "The remainder with the sign of x.")
max: Final[BinaryFunction] = _binary(p.Max(), "max", "The greater of two elements; nan if one is.")
min: Final[BinaryFunction] = _binary(p.Min(), "min", "The lesser of two elements; nan if one is.")
atan2: Final[BinaryFunction] = _binary(p.Atan2(), "atan2", "The angle of the point (y, x).")
nextafter: Final[BinaryFunction] = _binary(
    p.Nextafter(), "nextafter", "The next value from x towards y."
)
complex: Final[BinaryFunction] = _binary(p.Complex(), "complex", "x + iy.")
eq: Final[BinaryFunction] = _binary(p.Eq(), "eq", "x == y.")
ne: Final[BinaryFunction] = _binary(p.Ne(), "ne", "x != y.")
lt: Final[BinaryFunction] = _binary(p.Lt(), "lt", "x < y.")
le: Final[BinaryFunction] = _binary(p.Le(), "le", "x <= y.")
gt: Final[BinaryFunction] = _binary(p.Gt(), "gt", "x > y.")
ge: Final[BinaryFunction] = _binary(p.Ge(), "ge", "x >= y.")
bitwise_and: Final[BinaryFunction] = _binary(
    p.And(), "bitwise_and", "Bitwise and; logical on booleans."
)
bitwise_or: Final[BinaryFunction] = _binary(
    p.Or(), "bitwise_or", "Bitwise or; logical on booleans."
)
bitwise_xor: Final[BinaryFunction] = _binary(p.Xor(), "bitwise_xor", "Bitwise exclusive or.")
shift_left: Final[BinaryFunction] = _binary(p.ShiftLeft(), "shift_left", "Bits of x moved up by y.")
shift_right_logical: Final[BinaryFunction] = _binary(
    p.ShiftRightLogical(), "shift_right_logical", "Bits of x moved down by y; zeros come in."
)
shift_right_arithmetic: Final[BinaryFunction] = _binary(
    p.ShiftRightArithmetic(), "shift_right_arithmetic", "Bits of x moved down by y; signs come in."
)

neg: Final[UnaryFunction] = _unary(p.Neg(), "neg", "-x.")
abs: Final[UnaryFunction] = _unary(p.Abs(), "abs", "The magnitude.")
sign: Final[UnaryFunction] = _unary(
    p.Sign(), "sign", "-1, 0 or 1; of a complex number, its direction."
)
floor: Final[UnaryFunction] = _unary(
    p.Floor(), "floor", "The greatest integer that is not greater."
)
ceil: Final[UnaryFunction] = _unary(p.Ceil(), "ceil", "The least integer that is not less.")
is_finite: Final[UnaryFunction] = _unary(
    p.IsFinite(), "is_finite", "Whether elements are neither infinite nor nan."
)
exp: Final[UnaryFunction] = _unary(p.Exp(), "exp", "e to the power of x.")
exp2: Final[UnaryFunction] = _unary(p.Exp2(), "exp2", "2 to the power of x.")
expm1: Final[UnaryFunction] = _unary(p.Expm1(), "expm1", "exp(x) - 1, exact near 0.")
log: Final[UnaryFunction] = _unary(p.Log(), "log", "The natural logarithm.")
log1p: Final[UnaryFunction] = _unary(p.Log1p(), "log1p", "log(1 + x), exact near 0.")
sqrt: Final[UnaryFunction] = _unary(p.Sqrt(), "sqrt", "The square root.")
rsqrt: Final[UnaryFunction] = _unary(p.Rsqrt(), "rsqrt", "1 / sqrt(x).")
cbrt: Final[UnaryFunction] = _unary(p.Cbrt(), "cbrt", "The cube root.")
square: Final[UnaryFunction] = _unary(p.Square(), "square", "x · x.")
sin: Final[UnaryFunction] = _unary(p.Sin(), "sin", "The sine.")
cos: Final[UnaryFunction] = _unary(p.Cos(), "cos", "The cosine.")
tan: Final[UnaryFunction] = _unary(p.Tan(), "tan", "The tangent.")
asin: Final[UnaryFunction] = _unary(p.Asin(), "asin", "The inverse sine.")
acos: Final[UnaryFunction] = _unary(p.Acos(), "acos", "The inverse cosine.")
atan: Final[UnaryFunction] = _unary(p.Atan(), "atan", "The inverse tangent.")
sinh: Final[UnaryFunction] = _unary(p.Sinh(), "sinh", "The hyperbolic sine.")
cosh: Final[UnaryFunction] = _unary(p.Cosh(), "cosh", "The hyperbolic cosine.")
tanh: Final[UnaryFunction] = _unary(p.Tanh(), "tanh", "The hyperbolic tangent.")
asinh: Final[UnaryFunction] = _unary(p.Asinh(), "asinh", "The inverse hyperbolic sine.")
acosh: Final[UnaryFunction] = _unary(p.Acosh(), "acosh", "The inverse hyperbolic cosine.")
atanh: Final[UnaryFunction] = _unary(p.Atanh(), "atanh", "The inverse hyperbolic tangent.")
logistic: Final[UnaryFunction] = _unary(p.Logistic(), "logistic", "1 / (1 + exp(-x)).")
erf: Final[UnaryFunction] = _unary(p.Erf(), "erf", "The error function.")
erfc: Final[UnaryFunction] = _unary(p.Erfc(), "erfc", "1 - erf(x), exact for large x.")
bitwise_not: Final[UnaryFunction] = _unary(
    p.Not(), "bitwise_not", "Bitwise complement; logical on booleans."
)
population_count: Final[UnaryFunction] = _unary(
    p.PopulationCount(), "population_count", "How many bits are set."
)
real: Final[UnaryFunction] = _unary(p.Real(), "real", "The real part of complex elements.")
imag: Final[UnaryFunction] = _unary(p.Imag(), "imag", "The imaginary part of complex elements.")


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; of real elements, the complex number."""
    value = as_value(x, "the operand of conj")
    if family(value.dtype) == "float":
        value = bind1(p.Complex(), value, pr.literal(0.0, value.type.update(shape=())))
    return bind1(p.Conj(), value)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y, an inexact or integer one, for inexact x."""
    base, power = operands("pow", x)[0], y
    if isinstance(power, int) and not isinstance(power, bool):
        return integer_pow(x, power)
    if not is_python_scalar(power):
        exponent = as_value(power, "the exponent of pow")
        if family(exponent.dtype) in ("int", "uint") and is_inexact_dtype(base.type.dtype):
            power = convert_element_type(exponent, base.type.dtype)
    return bind1(p.Pow(), *operands("pow", x, power))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power of a static integer."""
    return bind1(p.IntegerPow(y), *operands("integer_pow", x))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x."""
    return integer_pow(x, -1)


class RoundingMethod:
    """How :func:`round` breaks ties."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer; ties go away from zero, or to the even one."""
    (value,) = operands("round", x)
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return bind1(p.RoundEven(), value)
    if rounding_method != RoundingMethod.AWAY_FROM_ZERO:
        raise BadArgument("round knows two methods", "0 or 1", repr(rounding_method))
    size = bind1(p.Abs(), value)
    whole = floor(size)
    # The difference is exact, which size + 0.5 is not.
    up = ge(sub(size, whole), 0.5)
    return mul(bind1(p.Sign(), value), select(up, add(whole, 1.0), whole))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """``min(max(x, low), high)``."""
    return bind1(p.Clamp(), *operands("clamp", min, x, max))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """``on_true`` where the condition holds, else ``on_false``."""
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Elementwise ``cases[which]``, for a boolean or int32 ``which``."""
    return bind1(p.SelectN(), *operands("select_n", which), *operands("select_n", *cases))


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements in another dtype."""
    (x,) = operands("convert_element_type", operand)
    dtype = allowed(new_dtype)
    if isinstance(x, Array) and x.dtype == dtype and not x.weak_type:
        return x
    return bind1(p.ConvertElementType(dtype, False), x)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of elements read as another dtype of the same width."""
    (x,) = operands("bitcast_convert_type", operand)
    return bind1(p.BitcastConvertType(allowed(new_dtype)), x)


def stop_gradient(x: T) -> T:
    """The same values, with a derivative of zero; ``x`` may be a tree."""

    def stop(leaf: object) -> object:
        if isinstance(leaf, Array) and is_inexact_dtype(leaf.dtype):
            return bind1(p.StopGradient(), leaf)
        if isinstance(leaf, Ref):
            raise not_an_array(leaf, "an operand of stop_gradient")
        return leaf

    return cast(T, stop(x) if isinstance(x, Array) else tree.map(stop, x))
