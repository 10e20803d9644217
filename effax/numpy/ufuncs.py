"""Elementwise functions, with NumPy's names and JAX's promotion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from effax.array import Array, DeviceArray, TracedArray
from effax.bind import bind1
from effax.ir.build import typing_of
from effax.ir.dtypes import DType, family, is_complex, is_float
from effax.ir.errors import IllTyped
from effax.ir.prims import elementwise as ew
from effax.ir.syntax import Lit
from effax.ir.trace import current_trace
from effax.ir.types import array_type
from effax.numpy import promotion as pr

BinaryFunction = Callable[[object, object], Array]
UnaryFunction = Callable[[object], Array]
Dtyping = Callable[[DType, bool], tuple[DType, bool]]


def _as_is(dtype: DType, weak: bool) -> tuple[DType, bool]:
    return dtype, weak


def _number(dtype: DType, weak: bool) -> tuple[DType, bool]:
    """Booleans are numbers for arithmetic that has no boolean meaning."""
    if family(dtype) == "bool":
        return pr.allowed(int), weak
    return dtype, weak


def _kept_by(prim: ew.Elementwise, dtyping: Dtyping, dtype: DType) -> bool:
    return family(dtype) in prim.accepts and dtyping(dtype, False)[0] == dtype


class _Kept(dict[DType, bool]):
    """Whether a function works in a dtype as it is, found once for each."""

    def __init__(self, prim: ew.Elementwise, dtyping: Dtyping) -> None:
        super().__init__()
        self.prim = prim
        self.dtyping = dtyping

    def __missing__(self, dtype: DType) -> bool:
        kept = self[dtype] = _kept_by(self.prim, self.dtyping, dtype)
        return kept


def _binary(prim: ew.Elementwise, name: str, dtyping: Dtyping, doc: str) -> BinaryFunction:
    kept = _Kept(prim, dtyping)

    def function(x1: object, x2: object, /) -> Array:
        trace = current_trace()
        if trace is not None and type(x1) is TracedArray and x1.trace is trace:
            a = x1.atom
            type_ = a.type
            if type(x2) is TracedArray:
                if x2.trace is trace and x2.atom.type is type_ and kept[type_.dtype]:
                    return TracedArray(trace, trace.emit(prim, (a, x2.atom))[0])
            elif type(x2) is float and type_.dtype.kind == "f" and kept[type_.dtype]:
                constant = pr.literal(x2, array_type((), type_.dtype, type_.weak))  # type: ignore[union-attr]  # an array's type
                return TracedArray(trace, trace.emit(prim, (a, constant))[0])
        elif trace is None and type(x1) is DeviceArray and type(x2) is DeviceArray:
            type_ = x1.type
            if type_ is x2.type and kept[type_.dtype]:
                with np.errstate(all="ignore"):
                    value = np.asarray(prim.ufunc(x1.numpy(), x2.numpy()))
                return DeviceArray(value, typing_of(prim, (type_, type_)).outs[0])  # type: ignore[arg-type]  # an array's type
        dtype, weak = dtyping(*pr.common_dtype((x1, x2), name))
        return bind1(prim, *pr.brought_together((x1, x2), name, dtype, weak))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(prim: ew.Elementwise, name: str, dtyping: Dtyping, doc: str) -> UnaryFunction:
    kept = _Kept(prim, dtyping)

    def function(x: object, /) -> Array:
        if type(x) is TracedArray:
            trace = current_trace()
            if trace is not None and x.trace is trace and kept[x.atom.type.dtype]:
                return TracedArray(trace, trace.emit(prim, (x.atom,))[0])
        dtype, weak = dtyping(*pr.operand_kind(x, f"the operand of {name}"))
        return bind1(prim, pr.typed(x, dtype, weak, f"the operand of {name}"))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_inexact = pr.inexact

add = _binary(ew.Add(), "add", _as_is, "Elementwise sum; of booleans, logical or.")
subtract = _binary(ew.Sub(), "subtract", _as_is, "Elementwise difference.")
multiply = _binary(ew.Mul(), "multiply", _as_is, "Elementwise product; of booleans, logical and.")
true_divide = _binary(ew.Div(), "divide", _inexact, "Elementwise quotient, in a floating dtype.")
divide = true_divide
maximum = _binary(ew.Max(), "maximum", _as_is, "The greater of two elements; nan if one is.")
minimum = _binary(ew.Min(), "minimum", _as_is, "The lesser of two elements; nan if one is.")
arctan2 = _binary(ew.Atan2(), "arctan2", _inexact, "The angle of the point (x2, x1).")
atan2 = arctan2
nextafter = _binary(ew.Nextafter(), "nextafter", _inexact, "The next value from x1 towards x2.")
equal = _binary(ew.Eq(), "equal", _as_is, "Whether elements are equal.")
not_equal = _binary(ew.Ne(), "not_equal", _as_is, "Whether elements differ.")
less = _binary(ew.Lt(), "less", _as_is, "Whether x1 < x2.")
less_equal = _binary(ew.Le(), "less_equal", _as_is, "Whether x1 <= x2.")
greater = _binary(ew.Gt(), "greater", _as_is, "Whether x1 > x2.")
greater_equal = _binary(ew.Ge(), "greater_equal", _as_is, "Whether x1 >= x2.")
bitwise_and = _binary(ew.And(), "bitwise_and", _as_is, "Bitwise and; logical on booleans.")
bitwise_or = _binary(ew.Or(), "bitwise_or", _as_is, "Bitwise or; logical on booleans.")
bitwise_xor = _binary(ew.Xor(), "bitwise_xor", _as_is, "Bitwise exclusive or.")
left_shift = _binary(ew.ShiftLeft(), "left_shift", _number, "Bits of x1 moved up by x2.")

negative = _unary(ew.Neg(), "negative", _as_is, "Elementwise negation.")
sign = _unary(ew.Sign(), "sign", _as_is, "-1, 0 or 1; of a complex number, its direction.")
floor = _unary(ew.Floor(), "floor", _inexact, "The greatest integer that is not greater.")
ceil = _unary(ew.Ceil(), "ceil", _inexact, "The least integer that is not less.")
rint = _unary(ew.RoundEven(), "rint", _inexact, "The nearest integer, ties to even.")
exp = _unary(ew.Exp(), "exp", _inexact, "e to the power of x.")
exp2 = _unary(ew.Exp2(), "exp2", _inexact, "2 to the power of x.")
expm1 = _unary(ew.Expm1(), "expm1", _inexact, "exp(x) - 1, exact near 0.")
log = _unary(ew.Log(), "log", _inexact, "The natural logarithm.")
log1p = _unary(ew.Log1p(), "log1p", _inexact, "log(1 + x), exact near 0.")
sqrt = _unary(ew.Sqrt(), "sqrt", _inexact, "The square root.")
cbrt = _unary(ew.Cbrt(), "cbrt", _inexact, "The cube root.")
square = _unary(ew.Square(), "square", _number, "x times x.")
sin = _unary(ew.Sin(), "sin", _inexact, "The sine.")
cos = _unary(ew.Cos(), "cos", _inexact, "The cosine.")
tan = _unary(ew.Tan(), "tan", _inexact, "The tangent.")
arcsin = _unary(ew.Asin(), "arcsin", _inexact, "The inverse sine.")
arccos = _unary(ew.Acos(), "arccos", _inexact, "The inverse cosine.")
arctan = _unary(ew.Atan(), "arctan", _inexact, "The inverse tangent.")
sinh = _unary(ew.Sinh(), "sinh", _inexact, "The hyperbolic sine.")
cosh = _unary(ew.Cosh(), "cosh", _inexact, "The hyperbolic cosine.")
tanh = _unary(ew.Tanh(), "tanh", _inexact, "The hyperbolic tangent.")
arcsinh = _unary(ew.Asinh(), "arcsinh", _inexact, "The inverse hyperbolic sine.")
arccosh = _unary(ew.Acosh(), "arccosh", _inexact, "The inverse hyperbolic cosine.")
arctanh = _unary(ew.Atanh(), "arctanh", _inexact, "The inverse hyperbolic tangent.")
invert = _unary(ew.Not(), "invert", _as_is, "Bitwise complement; logical on booleans.")
bitwise_not = invert
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


def absolute(x: object, /) -> Array:
    """The magnitude of elements; real for complex ones."""
    dtype, weak = pr.operand_kind(x, "the operand of absolute")
    operand = pr.typed(x, dtype, weak, "the operand of absolute")
    if family(dtype) in ("bool", "uint"):
        return positive(operand)
    return bind1(ew.Abs(), operand)


abs = absolute  # noqa: A001  NumPy's name


def positive(x: object, /) -> Array:
    """The operand itself, as an array."""
    if isinstance(x, Lit):
        return bind1(ew.Copy(), x)
    return pr.as_value(x, "the operand of positive")


def isfinite(x: object, /) -> Array:
    """Whether elements are neither infinite nor nan."""
    dtype, weak = _inexact(*pr.operand_kind(x, "the operand of isfinite"))
    operand = pr.typed(x, dtype, weak, "the operand of isfinite")
    if is_complex(dtype):
        return bitwise_and(isfinite(real(operand)), isfinite(imag(operand)))
    return bind1(ew.IsFinite(), operand)


def isnan(x: object, /) -> Array:
    """Whether elements are nan."""
    return not_equal(x, x)


def isinf(x: object, /) -> Array:
    """Whether elements are infinite, of either sign."""
    dtype, _ = pr.operand_kind(x, "the operand of isinf")
    if is_complex(dtype):
        return bitwise_or(isinf(real(x)), isinf(imag(x)))
    if not is_float(dtype):
        return not_equal(x, x)
    return equal(absolute(x), float("inf"))


def real(x: object, /) -> Array:
    """The real part."""
    x = pr.as_value(x, "the operand of real")
    return bind1(ew.Real(), x) if is_complex(x.dtype) else x


def imag(x: object, /) -> Array:
    """The imaginary part."""
    x = pr.as_value(x, "the operand of imag")
    return bind1(ew.Imag(), x) if is_complex(x.dtype) else multiply(x, 0)


def conj(x: object, /) -> Array:
    """The complex conjugate."""
    x = pr.as_value(x, "the operand of conj")
    return bind1(ew.Conj(), x) if is_complex(x.dtype) else x


conjugate = conj


def right_shift(x1: object, x2: object, /) -> Array:
    """Bits of x1 moved down by x2; the sign stays."""
    dtype, weak = _number(*pr.common_dtype((x1, x2), "right_shift"))
    operands = pr.brought_together((x1, x2), "right_shift", dtype, weak)
    logical = family(dtype) == "uint"
    return bind1(ew.ShiftRightLogical() if logical else ew.ShiftRightArithmetic(), *operands)


def remainder(x1: object, x2: object, /) -> Array:
    """The remainder with the sign of the divisor, as Python's ``%``."""
    dtype, weak = _number(*pr.common_dtype((x1, x2), "remainder"))
    a, b = pr.brought_together((x1, x2), "remainder", dtype, weak)
    if is_complex(dtype):
        raise IllTyped("remainder takes real operands", found=str(dtype))
    rest = bind1(ew.Rem(), a, b)
    if family(dtype) == "uint":
        return rest
    zero = pr.literal(0, array_type((), dtype, weak))
    signs_differ = not_equal(less(rest, zero), _is_negative(b, zero))
    wrong = bitwise_and(signs_differ, bind1(ew.Ne(), rest, zero))
    return where(wrong, bind1(ew.Add(), rest, b), rest)


mod = remainder


def _is_negative(x: Array | Lit, zero: Lit) -> Array:
    return bind1(ew.Lt(), x, zero)


def fmod(x1: object, x2: object, /) -> Array:
    """The remainder with the sign of the dividend."""
    dtype, weak = _number(*pr.common_dtype((x1, x2), "fmod"))
    return bind1(ew.Rem(), *pr.brought_together((x1, x2), "fmod", dtype, weak))


def floor_divide(x1: object, x2: object, /) -> Array:
    """The quotient rounded down, as Python's ``//``."""
    dtype, weak = _number(*pr.common_dtype((x1, x2), "floor_divide"))
    a, b = pr.brought_together((x1, x2), "floor_divide", dtype, weak)
    quotient = bind1(ew.Div(), a, b)
    if is_float(dtype):
        rest = remainder_of(a, b)
        exact = bind1(ew.Div(), bind1(ew.Sub(), a, rest), b)
        return bind1(ew.RoundEven(), exact)
    if is_complex(dtype):
        raise IllTyped("floor_divide takes real operands", found=str(dtype))
    if family(dtype) == "uint":
        return quotient
    zero = pr.literal(0, array_type((), dtype, weak))
    signs_differ = not_equal(_is_negative(a, zero), _is_negative(b, zero))
    inexact = bind1(ew.Ne(), bind1(ew.Rem(), a, b), zero)
    lower = subtract(quotient, 1)
    return where(bitwise_and(signs_differ, inexact), lower, quotient)


def remainder_of(a: Array | Lit, b: Array | Lit) -> Array:
    """The remainder of operands of one floating dtype, with the sign of the divisor."""
    rest = bind1(ew.Rem(), a, b)
    zero = pr.literal(0, array_type((), rest.dtype, rest.weak_type))
    signs_differ = not_equal(less(rest, zero), _is_negative(b, zero))
    wrong = bitwise_and(signs_differ, bind1(ew.Ne(), rest, zero))
    return where(wrong, bind1(ew.Add(), rest, b), rest)


def power(x1: object, x2: object, /) -> Array:
    """x1 to the power of x2; a static integer power is multiplied out."""
    if isinstance(x2, int) and not isinstance(x2, bool):
        return _integer_power(x1, x2)
    dtype, weak = pr.common_dtype((x1, x2), "power")
    if family(dtype) in ("bool", "int", "uint"):
        return _power_of_integers(x1, x2, *_number(dtype, weak))
    return bind1(ew.Pow(), *pr.brought_together((x1, x2), "power", dtype, weak))


pow = power  # noqa: A001  NumPy's name


def _integer_power(x: object, n: int) -> Array:
    dtype, weak = _number(*pr.operand_kind(x, "the base of power"))
    if n < 0 and family(dtype) in ("int", "uint"):
        raise IllTyped(
            "integers to a negative power are not integers",
            found=f"power {n} of {dtype}",
            remedy="convert the base to a floating dtype",
        )
    base = pr.typed(x, dtype, weak, "the base of power")
    if n == 2:
        return bind1(ew.Square(), base)
    return bind1(ew.IntegerPow(n), base)


def _power_of_integers(x1: object, x2: object, dtype: DType, weak: bool) -> Array:
    """Square and multiply over the bits of a nonnegative integer exponent."""
    base, exponent = (
        to_array(o) for o in pr.brought_together((x1, x2), "power", dtype, weak)
    )
    result = where(equal(exponent, exponent), 1, base)
    result = pr.converted(pr.to_shape(result, np.broadcast_shapes(base.shape, exponent.shape)), dtype, weak)
    for _ in range(dtype.itemsize * 8):
        odd = equal(bitwise_and(exponent, 1), 1)
        result = where(odd, multiply(result, base), result)
        exponent = bind1(ew.ShiftRightLogical(), exponent, pr.literal(1, array_type((), exponent.dtype, exponent.weak_type)))
        base = multiply(base, base)
    return result


def to_array(x: Array | Lit) -> Array:
    """A constant as an array."""
    return bind1(ew.Copy(), x) if isinstance(x, Lit) else x


def float_power(x1: object, x2: object, /) -> Array:
    """x1 to the power of x2, in a floating dtype."""
    dtype, weak = _inexact(*pr.common_dtype((x1, x2), "float_power"))
    return bind1(ew.Pow(), *pr.brought_together((x1, x2), "float_power", dtype, weak))


def where(condition: object, x: object, y: object, /) -> Array:
    """Elements of ``x`` where the condition holds, else of ``y``."""
    dtype, weak = pr.common_dtype((x, y), "where")
    test = pr.as_value(condition, "the condition of where")
    if family(test.dtype) != "bool":
        test = not_equal(test, 0)
    a, b = (pr.typed(o, dtype, weak, "a case of where") for o in (x, y))
    shape = pr.broadcast_shapes([test.shape, a.type.shape, b.type.shape], "where")
    a, b = (pr.broadcast(o, shape) for o in (a, b))
    return bind1(ew.SelectN(), pr.broadcast(test, shape), b, a)


def logical_not(x: object, /) -> Array:
    """Whether elements are zero."""
    return invert(_truth(x))


def _truth(x: object) -> Array:
    dtype, _ = pr.operand_kind(x, "a logical operand")
    return pr.as_value(x) if family(dtype) == "bool" else not_equal(x, 0)


def logical_and(x1: object, x2: object, /) -> Array:
    """Whether both elements are nonzero."""
    return bitwise_and(_truth(x1), _truth(x2))


def logical_or(x1: object, x2: object, /) -> Array:
    """Whether one of the elements is nonzero."""
    return bitwise_or(_truth(x1), _truth(x2))


def logical_xor(x1: object, x2: object, /) -> Array:
    """Whether exactly one of the elements is nonzero."""
    return bitwise_xor(_truth(x1), _truth(x2))


def clip(x: object, min: object = None, max: object = None) -> Array:  # noqa: A002  NumPy's names
    """Elements moved into the interval from ``min`` to ``max``."""
    result = x if min is None else maximum(x, min)
    result = result if max is None else minimum(result, max)
    return positive(result)


def logaddexp(x1: object, x2: object, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    dtype, weak = _inexact(*pr.common_dtype((x1, x2), "logaddexp"))
    a, b = (to_array(o) for o in pr.brought_together((x1, x2), "logaddexp", dtype, weak))
    top = maximum(a, b)
    gap = subtract(a, b)
    # Of equal infinities the gap is nan, and the result is the infinity itself.
    return where(isnan(gap), add(a, b), add(top, log1p(exp(negative(absolute(gap))))))


def reciprocal(x: object, /) -> Array:
    """1 / x."""
    return true_divide(1, x)


def deg2rad(x: object, /) -> Array:
    """Degrees as radians."""
    return multiply(x, float(np.pi / 180))


def rad2deg(x: object, /) -> Array:
    """Radians as degrees."""
    return multiply(x, float(180 / np.pi))


def round(x: object, decimals: int = 0) -> Array:  # noqa: A001  NumPy's name
    """Rounded to so many decimals, ties to even."""
    dtype, _ = pr.operand_kind(x, "the operand of round")
    if family(dtype) in ("bool", "int", "uint"):
        return positive(x)
    if decimals == 0:
        return rint(x)
    scale = 10.0**decimals
    return true_divide(rint(multiply(x, scale)), scale)


def astype(x: object, dtype: object) -> Array:
    """The array in another dtype."""
    target = pr.allowed(dtype)
    value = pr.as_value(x, "the operand of astype")
    if is_complex(value.dtype) and not is_complex(target) and family(target) != "bool":
        value = real(value)
    return pr.converted(value, target, False)
