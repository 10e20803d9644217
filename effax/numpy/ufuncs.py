"""Elementwise functions that are primitives, with NumPy's names and JAX's promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.complex_order import Operand, compared
from effax.arrays.config import allowed, config
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.devices_in_use import in_use
from effax.arrays.elementwise_docs import elementwise_doc
from effax.arrays.promotion import astype
from effax.arrays.traced_array import TracedArray
from effax.ir import prims as p
from effax.ir.dtypes import BOOL, DType, family, is_complex, is_inexact_dtype
from effax.ir.eval.quiet import quietly
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Lit
from effax.ir.trace import Trace, current_trace
from effax.ir.types import array_type

__all__ = [
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "astype", "atan", "atan2", "atanh",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_right_shift", "cbrt", "ceil", "conj", "conjugate", "cos", "cosh", "divide",
    "equal", "exp", "exp2", "expm1", "float_power", "floor", "greater", "greater_equal",
    "imag", "invert", "left_shift", "less", "less_equal", "log", "log1p", "nextafter",
    "not_equal", "positive", "real", "right_shift", "rint", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "true_divide",
]  # fmt: skip

BinaryFunction = Callable[[ArrayLike, ArrayLike], Array]
UnaryFunction = Callable[[ArrayLike], Array]
Dtyping = Callable[[DType, bool], tuple[DType, bool]]

inexact: Final[Dtyping] = pr.inexact


def _as_is(dtype: DType, weak: bool) -> tuple[DType, bool]:
    return dtype, weak


def number(dtype: DType, weak: bool) -> tuple[DType, bool]:
    """Return the dtype of arithmetic that has no boolean meaning: booleans become integers."""
    if family(dtype) == "bool":
        return allowed(int), weak
    return dtype, weak


class _Kept(dict[DType, bool]):
    """Cache of whether a function applies to a dtype without conversion."""

    def __init__(self, prim: p.Elementwise, dtyping: Dtyping) -> None:
        super().__init__()
        self.prim = prim
        self.dtyping = dtyping

    def __missing__(self, dtype: DType) -> bool:
        accepted = family(dtype) in self.prim.accepts
        kept = self[dtype] = accepted and self.dtyping(dtype, False)[0] == dtype
        return kept


class _AllKept(_Kept):
    """Cache of a function that applies to every dtype."""

    def __missing__(self, dtype: DType) -> bool:
        return True


_SELECT = p.SelectN()
_ALL_KEPT = _AllKept(p.Eq(), _as_is)


def _atoms(trace: Trace, kept: _Kept, x1: object, x2: object) -> tuple[Atom, Atom] | None:
    """Return two operands as atoms of the trace, or None where one needs a conversion."""
    if type(x1) is TracedArray:
        if x1.owner is not trace:
            return None
        a = x1.atom
        if type(x2) is TracedArray:
            b = x2.atom
            same = a.type is b.type or (
                a.type.dtype is b.type.dtype and (not a.type.shape or not b.type.shape)
            )
            return (a, b) if same and x2.owner is trace and kept[a.type.dtype] else None
        constant = _as_literal(a, x2, kept)
        return None if constant is None else (a, constant)
    if type(x2) is TracedArray and x2.owner is trace:
        constant = _as_literal(x2.atom, x1, kept)
        return None if constant is None else (constant, x2.atom)
    return None


def _as_literal(atom: Atom, x: object, kept: _Kept) -> Lit | None:
    """Return a number as a constant of the atom's dtype, or None where promotion changes it."""
    dtype = atom.type.dtype
    kind = type(x)
    same_kind = (dtype.kind == "f" and (kind is float or kind is int)) or (
        dtype.kind == "i" and kind is int
    )
    # Two numbers have 64 bits where these are enabled after the first was traced.
    widens = atom.type.weak and dtype.itemsize < 8 and config.enable_x64
    if same_kind and kept[dtype] and not widens:
        return pr.literal(x, array_type((), dtype, atom.type.weak))  # type: ignore[arg-type]  # a number
    return None


def _binary(
    prim: p.Elementwise,
    name: str,
    dtyping: Dtyping,
    apply: Callable[[Primitive, Operand, Operand], Array] = bind1,
) -> BinaryFunction:
    kept = _Kept(prim, dtyping)

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        trace = current_trace()
        if trace is not None:
            ins = _atoms(trace, kept, x1, x2)
            if ins is not None:
                return TracedArray(trace, trace.emit(prim, ins)[0])
        elif type(x1) is DeviceArray and type(x2) is DeviceArray:
            type_ = x1._type
            if (
                type_ is x2._type
                and kept[type_.dtype]
                and not (config.watched or in_use.several_devices)
            ):
                (value,) = quietly(prim.evaluate, x1.numpy(), x2.numpy())
                return DeviceArray(
                    value, array_type(type_.shape, BOOL) if prim.predicate else type_
                )
        dtype, weak = dtyping(*pr.common_dtype((x1, x2), name))
        return apply(prim, *pr.brought_together((x1, x2), name, dtype, weak))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = elementwise_doc("jnp", name, "x1", "x2", inexact=dtyping is inexact)
    return function


def _unary(prim: p.Elementwise, name: str, dtyping: Dtyping) -> UnaryFunction:
    kept = _Kept(prim, dtyping)

    def function(x: ArrayLike, /) -> Array:
        trace = current_trace()
        if type(x) is TracedArray:
            if trace is not None and x.owner is trace and kept[x.atom.type.dtype]:
                return TracedArray(trace, trace.emit(prim, (x.atom,))[0])
        elif trace is None and type(x) is DeviceArray:
            type_ = x._type
            if kept[type_.dtype] and not (config.watched or in_use.several_devices):
                (value,) = quietly(prim.evaluate, x.numpy())
                return DeviceArray(
                    value, array_type(type_.shape, BOOL) if prim.predicate else type_
                )
        dtype, weak = dtyping(*pr.operand_kind(x, f"the operand of {name}"))
        return bind1(prim, pr.typed(x, dtype, weak, f"the operand of {name}"))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = elementwise_doc("jnp", name, "x", inexact=dtyping is inexact)
    return function


_sum_of_numbers: Final[BinaryFunction] = _binary(p.Add(), "add", _as_is)
_product_of_numbers: Final[BinaryFunction] = _binary(p.Mul(), "multiply", _as_is)
subtract: Final[BinaryFunction] = _binary(p.Sub(), "subtract", _as_is)
true_divide: Final[BinaryFunction] = _binary(p.Div(), "divide", inexact)
divide = true_divide
maximum: Final[BinaryFunction] = _binary(p.Max(), "maximum", _as_is, compared)
minimum: Final[BinaryFunction] = _binary(p.Min(), "minimum", _as_is, compared)
arctan2: Final[BinaryFunction] = _binary(p.Atan2(), "arctan2", inexact)
nextafter: Final[BinaryFunction] = _binary(p.Nextafter(), "nextafter", inexact)
equal: Final[BinaryFunction] = _binary(p.Eq(), "equal", _as_is)
not_equal: Final[BinaryFunction] = _binary(p.Ne(), "not_equal", _as_is)
less: Final[BinaryFunction] = _binary(p.Lt(), "less", _as_is, compared)
less_equal: Final[BinaryFunction] = _binary(p.Le(), "less_equal", _as_is, compared)
greater: Final[BinaryFunction] = _binary(p.Gt(), "greater", _as_is, compared)
greater_equal: Final[BinaryFunction] = _binary(p.Ge(), "greater_equal", _as_is, compared)
bitwise_and: Final[BinaryFunction] = _binary(p.And(), "bitwise_and", _as_is)
bitwise_or: Final[BinaryFunction] = _binary(p.Or(), "bitwise_or", _as_is)
bitwise_xor: Final[BinaryFunction] = _binary(p.Xor(), "bitwise_xor", _as_is)
left_shift: Final[BinaryFunction] = _binary(p.ShiftLeft(), "left_shift", number)
float_power: Final[BinaryFunction] = _binary(p.Pow(), "float_power", inexact)

negative: Final[UnaryFunction] = _unary(p.Neg(), "negative", _as_is)
sign: Final[UnaryFunction] = _unary(p.Sign(), "sign", _as_is)
exp: Final[UnaryFunction] = _unary(p.Exp(), "exp", inexact)
exp2: Final[UnaryFunction] = _unary(p.Exp2(), "exp2", inexact)
expm1: Final[UnaryFunction] = _unary(p.Expm1(), "expm1", inexact)
log: Final[UnaryFunction] = _unary(p.Log(), "log", inexact)
log1p: Final[UnaryFunction] = _unary(p.Log1p(), "log1p", inexact)
sqrt: Final[UnaryFunction] = _unary(p.Sqrt(), "sqrt", inexact)
cbrt: Final[UnaryFunction] = _unary(p.Cbrt(), "cbrt", inexact)
square: Final[UnaryFunction] = _unary(p.Square(), "square", number)
sin: Final[UnaryFunction] = _unary(p.Sin(), "sin", inexact)
cos: Final[UnaryFunction] = _unary(p.Cos(), "cos", inexact)
tan: Final[UnaryFunction] = _unary(p.Tan(), "tan", inexact)
arcsin: Final[UnaryFunction] = _unary(p.Asin(), "arcsin", inexact)
arccos: Final[UnaryFunction] = _unary(p.Acos(), "arccos", inexact)
arctan: Final[UnaryFunction] = _unary(p.Atan(), "arctan", inexact)
sinh: Final[UnaryFunction] = _unary(p.Sinh(), "sinh", inexact)
cosh: Final[UnaryFunction] = _unary(p.Cosh(), "cosh", inexact)
tanh: Final[UnaryFunction] = _unary(p.Tanh(), "tanh", inexact)
arcsinh: Final[UnaryFunction] = _unary(p.Asinh(), "arcsinh", inexact)
arccosh: Final[UnaryFunction] = _unary(p.Acosh(), "arccosh", inexact)
arctanh: Final[UnaryFunction] = _unary(p.Atanh(), "arctanh", inexact)
invert: Final[UnaryFunction] = _unary(p.Not(), "invert", _as_is)

_floor: Final[UnaryFunction] = _unary(p.Floor(), "floor", inexact)
_ceil: Final[UnaryFunction] = _unary(p.Ceil(), "ceil", inexact)
_rint: Final[UnaryFunction] = _unary(p.RoundEven(), "rint", inexact)


def _on_booleans(numbers: BinaryFunction, booleans: BinaryFunction, name: str) -> BinaryFunction:
    """Return a function that applies ``booleans`` to two booleans, else ``numbers``."""

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        if _is_boolean(x1) and _is_boolean(x2):
            return booleans(x1, x2)
        return numbers(x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = numbers.__doc__
    return function


def _is_boolean(x: object) -> bool:
    if type(x) is TracedArray:
        return x.atom.type.dtype.kind == "b"
    return isinstance(x, bool) or (
        isinstance(x, Array | np.ndarray | np.generic) and x.dtype.kind == "b"
    )


add: Final[BinaryFunction] = _on_booleans(_sum_of_numbers, bitwise_or, "add")
multiply: Final[BinaryFunction] = _on_booleans(_product_of_numbers, bitwise_and, "multiply")


def _on_integers(floats: UnaryFunction, name: str) -> UnaryFunction:
    """Return a rounding function that returns integers unchanged."""

    def function(x: ArrayLike, /) -> Array:
        dtype, _ = pr.operand_kind(x, f"the operand of {name}")
        return floats(x) if is_inexact_dtype(dtype) else as_value(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = floats.__doc__
    return function


floor: Final[UnaryFunction] = _on_integers(_floor, "floor")
ceil: Final[UnaryFunction] = _on_integers(_ceil, "ceil")


def rint(x: ArrayLike, /) -> Array:
    """Return ``x`` rounded to the nearest integer, ties to even, in an inexact dtype.

    >>> jnp.rint(jnp.array([0.5, 1.6]))
    Array([0., 2.], dtype=float32)
    """
    dtype, _ = pr.operand_kind(x, "the operand of rint")
    if is_complex(dtype):
        return bind1(p.Complex(), _rint(real(x)), _rint(imag(x)))
    return _rint(x)


def absolute(x: ArrayLike, /) -> Array:
    """Return the magnitude of ``x``; real for complex ``x``.

    >>> jnp.absolute(jnp.array([-2, 1]))
    Array([2, 1], dtype=int32)
    """
    dtype, weak = pr.operand_kind(x, "the operand of absolute")
    if family(dtype) in ("bool", "uint"):
        return as_value(x)
    return bind1(p.Abs(), pr.typed(x, dtype, weak, "the operand of absolute"))


def positive(x: ArrayLike, /) -> Array:
    """Return ``x`` as an array.

    >>> jnp.positive(jnp.array([1]))
    Array([1], dtype=int32)
    """
    return as_value(x, "the operand of positive")


def real(x: ArrayLike, /) -> Array:
    """Return the real part of ``x``.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    value = as_value(x, "the operand of real")
    return bind1(p.Real(), value) if is_complex(value.dtype) else value


def imag(x: ArrayLike, /) -> Array:
    """Return the imaginary part of ``x``; zeros for real ``x``.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    value = as_value(x, "the operand of imag")
    if is_complex(value.dtype):
        return bind1(p.Imag(), value)
    return pr.to_shape(pr.literal(0, array_type((), value.dtype, value.weak_type)), value.shape)


def conj(x: ArrayLike, /) -> Array:
    """Return the complex conjugate of ``x``.

    >>> jnp.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    value = as_value(x, "the operand of conj")
    return bind1(p.Conj(), value) if is_complex(value.dtype) else value


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1`` shifted right by ``x2`` bits; the sign is kept.

    Args:
        x1: integer array or scalar.
        x2: integer array or scalar that broadcasts with ``x1``.

    Returns:
        Integer array of the broadcast shape.

    >>> jnp.right_shift(jnp.array([-8, 8]), 2)
    Array([-2,  2], dtype=int32)
    """
    dtype, weak = number(*pr.common_dtype((x1, x2), "right_shift"))
    operands = pr.brought_together((x1, x2), "right_shift", dtype, weak)
    logical = family(dtype) == "uint"
    return bind1(p.ShiftRightLogical() if logical else p.ShiftRightArithmetic(), *operands)


def _cases(trace: Trace, which: Atom, x: object, y: object) -> tuple[Atom, ...] | None:
    """Return the operands of a selection, or None where one needs a conversion or a broadcast."""
    pair = _atoms(trace, _ALL_KEPT, x, y)
    if pair is None or which.type.dtype.kind != "b":
        return None
    shape = pair[0].type.shape or pair[1].type.shape
    return (which, pair[1], pair[0]) if which.type.shape in (shape, ()) else None


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return elements of ``x`` where ``condition`` is nonzero, else of ``y``."""
    trace = current_trace()
    if trace is not None and type(condition) is TracedArray and condition.owner is trace:
        ins = _cases(trace, condition.atom, x, y)
        if ins is not None:
            return TracedArray(trace, trace.emit(_SELECT, ins)[0])
    dtype, weak = pr.common_dtype((x, y), "where")
    test = truth(condition)
    a, b = (pr.typed(o, dtype, weak, "a case of where") for o in (x, y))
    shapes = [test.shape, a.type.shape, b.type.shape]
    pr.check_ranks(shapes, "where")
    shape = pr.broadcast_shapes(shapes, "where")
    a, b = (pr.broadcast(o, shape) for o in (a, b))
    return bind1(p.SelectN(), pr.broadcast(test, shape), b, a)


def masked(mask: Array, x: Array, fill: bool | int | float = 0) -> Array:
    """Return elements of ``x`` where ``mask`` is true, else ``fill`` in the dtype of ``x``."""
    return bind1(p.SelectN(), mask, pr.literal(fill, array_type((), x.dtype, x.weak_type)), x)


def magnitude(x: Array) -> Array:
    """Return the root of a sum of squares, whose derivative at 0 is defined as 0.

    Norms and deviations then have the least of their subgradients at 0, and squares of them have
    the derivatives of sums of squares.
    """
    return bind1(p.Magnitude(), x)


def bitwise_count(x: ArrayLike, /) -> Array:
    """Return the number of bits set in the magnitude of ``x``, as uint8.

    >>> jnp.bitwise_count(jnp.array([7, -8]))
    Array([3, 1], dtype=uint8)
    """
    dtype, weak = number(*pr.operand_kind(x, "the operand of bitwise_count"))
    value = pr.typed(x, dtype, weak, "the operand of bitwise_count")
    magnitude = bind1(p.Abs(), value) if family(dtype) == "int" else value
    return pr.converted(bind1(p.PopulationCount(), magnitude), np.dtype(np.uint8), False)


def truth(x: ArrayLike) -> Array:
    """Return whether elements are nonzero."""
    dtype, _ = pr.operand_kind(x, "a condition")
    return as_value(x) if family(dtype) == "bool" else not_equal(x, 0)


abs = absolute
acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
conjugate = conj
bitwise_invert = invert
bitwise_not = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
