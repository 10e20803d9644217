"""Elementwise primitives by JAX's names: dtypes must agree, without promotion.

Python numbers take the dtype of the other operands; operands without axes go with any shape. The
two operands of a binary function may differ in axes of size 1, which broadcast.
"""

from __future__ import annotations

from builtins import max as max_of
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar, cast

import numpy as np

from effax import tree
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.binding import bind1
from effax.arrays.complex_order import compared
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value, is_python_scalar, not_an_array, python_kind
from effax.arrays.elementwise_docs import elementwise_doc
from effax.arrays.shapes import broadcast_to
from effax.ir import prims as p
from effax.ir.dtypes import FAMILY_RANKS, DType, family, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.syntax import Lit, Scalar
from effax.ir.types import array_type
from effax.lax.precision import Accuracy, check_accuracy

__all__ = [
    "RoundingMethod", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt",
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


class AccurateFunction(Protocol):
    """A function of one operand, and of the accuracy of its implementation."""

    def __call__(self, x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array: ...


def operands(what: str, *xs: ArrayLike) -> list[Array | Lit]:
    """Return the operands in one dtype.

    Raises:
        IllTyped: one is not an array, or a Python number loses its kind in that dtype.
    """
    values = [x if is_python_scalar(x) else as_value(x, f"an operand of {what}") for x in xs]
    arrays = [x for x in values if isinstance(x, Array)]
    if not arrays:
        dtype, weak = _of_numbers([x for x in values if not isinstance(x, Array)], what)
    else:
        dtype, weak = arrays[0].dtype, arrays[0].weak_type
    return [x if isinstance(x, Array) else _constant(x, dtype, weak, what) for x in values]


def _of_numbers(values: Sequence[Scalar], what: str) -> tuple[DType, bool]:
    """Return the dtype of Python numbers. Raises IllTyped unless they are of one kind."""
    if len({python_kind(x) for x in values}) > 1:
        raise IllTyped(
            f"{what} takes operands of one dtype",
            expected="numbers of one type",
            found=", ".join(type(x).__name__ for x in values),
            remedy="use `effax.numpy`, which promotes",
        )
    return pr.common_dtype(values, what)


def _constant(x: Scalar, dtype: DType, weak: bool, what: str) -> Lit:
    if FAMILY_RANKS[family(allowed(python_kind(x)))] > FAMILY_RANKS[family(dtype)]:
        raise IllTyped(
            f"{what} takes operands of one dtype",
            expected=f"a number that is a {dtype}",
            found=f"{type(x).__name__}: {x}",
            remedy="convert the array with `convert_element_type`, or use `effax.numpy`",
        )
    return pr.literal(x, array_type((), dtype, weak))


def unary_function(prim: Primitive, name: str) -> UnaryFunction:
    """Return the function of arrays that applies a primitive of one operand."""

    def function(x: ArrayLike) -> Array:
        if isinstance(x, Array):
            return bind1(prim, x)
        return bind1(prim, *operands(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = elementwise_doc("lax", name, "x")
    return function


def accurate_function(prim: Primitive, name: str) -> AccurateFunction:
    """Return the function of a primitive of one operand that devices may compute in several ways.

    ``accuracy`` states which way suffices; all that there are compute as the most accurate.
    """

    def function(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
        if accuracy is not None:
            check_accuracy(accuracy, name)
        return bind1(prim, x) if isinstance(x, Array) else bind1(prim, *operands(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = elementwise_doc("lax", name, "x", accuracy=True)
    return function


def binary_function(
    prim: Primitive,
    name: str,
    apply: Callable[[Primitive, Array | Lit, Array | Lit], Array] = bind1,
) -> BinaryFunction:
    """Return the function of arrays that applies a primitive of two operands."""

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        if isinstance(x, Array) and isinstance(y, Array):
            have, other = x.shape, y.shape
            if have == other or not have or not other:
                return apply(prim, x, y)
        return apply(prim, *stretched(operands(name, x, y)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = elementwise_doc("lax", name, "x", "y")
    return function


def stretched(xs: list[Array | Lit]) -> list[Array | Lit]:
    """Return operands of one rank with axes of size 1 broadcast to the size of the others.

    Numbers are unchanged, and all operands where sizes or ranks do not fit.
    """
    shapes = {x.type.shape for x in xs if x.type.shape}
    if len(shapes) < 2 or len({len(shape) for shape in shapes}) > 1:
        return xs
    sizes = [{*axis} - {1} for axis in zip(*shapes, strict=True)]
    if any(len(axis) > 1 for axis in sizes):
        return xs
    shape = tuple([max_of(axis, default=1) for axis in sizes])
    return [broadcast_to(x, shape) if isinstance(x, Array) and x.shape else x for x in xs]


add: Final[BinaryFunction] = binary_function(p.Add(), "add")
sub: Final[BinaryFunction] = binary_function(p.Sub(), "sub")
div: Final[BinaryFunction] = binary_function(p.Div(), "div")
rem: Final[BinaryFunction] = binary_function(p.Rem(), "rem")
max: Final[BinaryFunction] = binary_function(p.Max(), "max", compared)
min: Final[BinaryFunction] = binary_function(p.Min(), "min", compared)
atan2: Final[BinaryFunction] = binary_function(p.Atan2(), "atan2")
nextafter: Final[BinaryFunction] = binary_function(p.Nextafter(), "nextafter")
complex: Final[BinaryFunction] = binary_function(p.Complex(), "complex")
eq: Final[BinaryFunction] = binary_function(p.Eq(), "eq")
ne: Final[BinaryFunction] = binary_function(p.Ne(), "ne")
lt: Final[BinaryFunction] = binary_function(p.Lt(), "lt", compared)
le: Final[BinaryFunction] = binary_function(p.Le(), "le", compared)
gt: Final[BinaryFunction] = binary_function(p.Gt(), "gt", compared)
ge: Final[BinaryFunction] = binary_function(p.Ge(), "ge", compared)
bitwise_and: Final[BinaryFunction] = binary_function(p.And(), "bitwise_and")
bitwise_or: Final[BinaryFunction] = binary_function(p.Or(), "bitwise_or")
bitwise_xor: Final[BinaryFunction] = binary_function(p.Xor(), "bitwise_xor")
shift_left: Final[BinaryFunction] = binary_function(p.ShiftLeft(), "shift_left")
shift_right_logical: Final[BinaryFunction] = binary_function(
    p.ShiftRightLogical(), "shift_right_logical"
)
shift_right_arithmetic: Final[BinaryFunction] = binary_function(
    p.ShiftRightArithmetic(), "shift_right_arithmetic"
)

neg: Final[UnaryFunction] = unary_function(p.Neg(), "neg")
abs: Final[UnaryFunction] = unary_function(p.Abs(), "abs")
sign: Final[UnaryFunction] = unary_function(p.Sign(), "sign")
floor: Final[UnaryFunction] = unary_function(p.Floor(), "floor")
ceil: Final[UnaryFunction] = unary_function(p.Ceil(), "ceil")
is_finite: Final[UnaryFunction] = unary_function(p.IsFinite(), "is_finite")
exp: Final[AccurateFunction] = accurate_function(p.Exp(), "exp")
exp2: Final[AccurateFunction] = accurate_function(p.Exp2(), "exp2")
expm1: Final[AccurateFunction] = accurate_function(p.Expm1(), "expm1")
log: Final[AccurateFunction] = accurate_function(p.Log(), "log")
log1p: Final[AccurateFunction] = accurate_function(p.Log1p(), "log1p")
sqrt: Final[AccurateFunction] = accurate_function(p.Sqrt(), "sqrt")
rsqrt: Final[AccurateFunction] = accurate_function(p.Rsqrt(), "rsqrt")
cbrt: Final[AccurateFunction] = accurate_function(p.Cbrt(), "cbrt")
square: Final[UnaryFunction] = unary_function(p.Square(), "square")
sin: Final[AccurateFunction] = accurate_function(p.Sin(), "sin")
cos: Final[AccurateFunction] = accurate_function(p.Cos(), "cos")
tan: Final[AccurateFunction] = accurate_function(p.Tan(), "tan")
asin: Final[UnaryFunction] = unary_function(p.Asin(), "asin")
acos: Final[UnaryFunction] = unary_function(p.Acos(), "acos")
atan: Final[UnaryFunction] = unary_function(p.Atan(), "atan")
sinh: Final[UnaryFunction] = unary_function(p.Sinh(), "sinh")
cosh: Final[UnaryFunction] = unary_function(p.Cosh(), "cosh")
tanh: Final[AccurateFunction] = accurate_function(p.Tanh(), "tanh")
asinh: Final[UnaryFunction] = unary_function(p.Asinh(), "asinh")
acosh: Final[UnaryFunction] = unary_function(p.Acosh(), "acosh")
atanh: Final[UnaryFunction] = unary_function(p.Atanh(), "atanh")
logistic: Final[AccurateFunction] = accurate_function(p.Logistic(), "logistic")
erf: Final[UnaryFunction] = unary_function(p.Erf(), "erf")
erfc: Final[AccurateFunction] = accurate_function(p.Erfc(), "erfc")
bitwise_not: Final[UnaryFunction] = unary_function(p.Not(), "bitwise_not")
population_count: Final[UnaryFunction] = unary_function(p.PopulationCount(), "population_count")
real: Final[UnaryFunction] = unary_function(p.Real(), "real")
imag: Final[UnaryFunction] = unary_function(p.Imag(), "imag")


_product: Final[BinaryFunction] = binary_function(p.Mul(), "mul")


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Return ``x * y``.

    Args:
        x: array or scalar.
        y: array or scalar of the dtype of ``x``.
        out_dtype: dtype in which the product is computed, and of the result.

    Returns:
        Array of the shape of the operands.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.mul(jnp.array([100], jnp.int8), jnp.array([2], jnp.int8), out_dtype=jnp.int16)
    Array([200], dtype=int16)
    """
    if out_dtype is None:
        return _product(x, y)
    a, b = (convert_element_type(v, out_dtype) for v in (x, y))
    return _product(a, b)


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate of ``x``; a real ``x`` becomes complex.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    value = as_value(x, "the operand of conj")
    if family(value.dtype) == "float":
        value = bind1(p.Complex(), value, pr.literal(0.0, value.type.update(shape=())))
    return bind1(p.Conj(), value)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x ** y`` for an inexact ``x``; integer ``y`` need not have its dtype.

    Args:
        x: inexact array or scalar.
        y: exponent: static int, integer array, or array of the dtype of ``x``.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.pow(jnp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    base, power = operands("pow", x)[0], y
    if isinstance(power, int) and not isinstance(power, bool):
        return integer_pow(x, power)
    if not is_python_scalar(power):
        exponent = as_value(power, "the exponent of pow")
        if family(exponent.dtype) in ("int", "uint") and is_inexact_dtype(base.type.dtype):
            power = convert_element_type(exponent, base.type.dtype)
    return bind1(p.Pow(), *stretched(operands("pow", x, power)))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return ``x ** y`` for a static integer ``y``.

    Args:
        x: array or scalar.
        y: Python int.

    Returns:
        Array of the shape and dtype of ``x``.

    >>> lax.integer_pow(jnp.array([2, 3]), 2)
    Array([4, 9], dtype=int32)
    """
    return bind1(p.IntegerPow(y), *operands("integer_pow", x))


def reciprocal(x: ArrayLike) -> Array:
    """Return ``1 / x``.

    >>> lax.reciprocal(jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    return integer_pow(x, -1)


class RoundingMethod:
    """Rule of :func:`round` for ties."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Return ``x`` rounded to the nearest integer.

    Args:
        x: array or scalar.
        rounding_method: AWAY_FROM_ZERO or TO_NEAREST_EVEN, for ties.

    Returns:
        Floating array of the shape and dtype of ``x``.

    Raises:
        BadArgument: an unknown method.

    >>> lax.round(jnp.array([2.5, -2.5]))
    Array([ 3., -3.], dtype=float32)
    """
    (value,) = operands("round", x)
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return bind1(p.RoundEven(), value)
    if rounding_method != RoundingMethod.AWAY_FROM_ZERO:
        raise BadArgument("unknown rounding method of round", "0 or 1", repr(rounding_method))
    size = bind1(p.Abs(), value)
    whole = floor(size)
    # The difference is exact, which size + 0.5 is not.
    up = ge(sub(size, whole), 0.5)
    return mul(bind1(p.Sign(), value), select(up, add(whole, 1.0), whole))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Return ``minimum(maximum(x, min), max)``.

    Args:
        min: lower bound, a scalar or of the shape of ``x``.
        x: array or scalar.
        max: upper bound, a scalar or of the shape of ``x``.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.clamp(0, jnp.array([-1, 5]), 3)
    Array([0, 3], dtype=int32)
    """
    return bind1(p.Clamp(), *operands("clamp", min, x, max))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return elements of ``on_true`` where ``pred`` is true, else of ``on_false``.

    Args:
        pred: boolean array, a scalar or of the shape of the cases.
        on_true: array.
        on_false: array of the same shape and dtype.

    Returns:
        Array of the shape and dtype of the cases.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Return ``cases[which]`` elementwise.

    Args:
        which: boolean or int32 array, a scalar or of the shape of the cases.
        cases: arrays of one shape and dtype.

    Returns:
        Array of the shape and dtype of the cases.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 2], dtype=int32)
    """
    return bind1(p.SelectN(), *operands("select_n", which), *operands("select_n", *cases))


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return ``operand`` converted to another dtype; of complex numbers, their real part.

    Args:
        operand: array or scalar.
        new_dtype: dtype of the result.

    Returns:
        Array of the shape of ``operand``.

    >>> lax.convert_element_type(jnp.array([1.7]), jnp.int32)
    Array([1], dtype=int32)
    """
    (x,) = operands("convert_element_type", operand)
    dtype = allowed(new_dtype)
    if isinstance(x, Array):
        if x.dtype == dtype and not x.weak_type:
            return x
        if x.dtype.kind == "c" and dtype.kind not in "cb":
            x = bind1(p.Real(), x)
    return bind1(p.ConvertElementType(dtype, False), x)


def stop_gradient(x: T) -> T:
    """Return ``x``, a tree, with derivative zero. Raises IllTyped for a leaf that is no array.

    >>> lax.stop_gradient(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """

    def stop(leaf: object) -> object:
        if isinstance(leaf, Array) and is_inexact_dtype(leaf.dtype):
            return bind1(p.StopGradient(), leaf)
        if isinstance(leaf, Array | np.ndarray | np.generic) or is_python_scalar(leaf):
            return leaf
        raise not_an_array(leaf, "an operand of stop_gradient")

    return cast(T, stop(x) if isinstance(x, Array) else tree.map(stop, x))
