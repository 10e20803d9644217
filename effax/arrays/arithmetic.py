"""The operators of arrays, which leave an unknown operand to the operators of its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, cast

import numpy as np

from effax.arrays.operators import ops
from effax.ir.symbolic import SymbolicDim

if TYPE_CHECKING:
    from effax.arrays.array import Array, ArrayLike

R = TypeVar("R")

This: TypeAlias = Any
"""An array, whose class is derived from the class of these operators."""

KNOWN_OPERANDS: Final[set[type]] = {bool, int, float, complex, np.ndarray}
"""The classes of operands that need no further look; those of arrays are added on definition."""

_NEVER: Final = (str, bytes, type(None))
"""The classes of values that are no operands, and never equal to an array."""

_REFUSED: Final = (list, tuple, set, dict, *_NEVER)
"""The classes that are no operands; sequences have operators that take an integer array."""


class Arithmetic:
    """The operators of an array, with NumPy's meaning.

    An operand of a class that is unknown is asked for its value (``__jax_array__``), or else the
    operator returns ``NotImplemented``, so that Python calls the reflected operator of that class.
    """

    __slots__ = ()
    __array_priority__: float = 100
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equality is elementwise, as NumPy's

    def __add__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.add(self, other)
        return _deferred(ops.add, self, other)

    def __radd__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.add(other, self)
        return _deferred(ops.add, self, other, swapped=True)

    def __sub__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.subtract(self, other)
        return _deferred(ops.subtract, self, other)

    def __rsub__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.subtract(other, self)
        return _deferred(ops.subtract, self, other, swapped=True)

    def __mul__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.multiply(self, other)
        return _deferred(ops.multiply, self, other)

    def __rmul__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.multiply(other, self)
        return _deferred(ops.multiply, self, other, swapped=True)

    def __truediv__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.true_divide(self, other)
        return _deferred(ops.true_divide, self, other)

    def __rtruediv__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.true_divide(other, self)
        return _deferred(ops.true_divide, self, other, swapped=True)

    def __floordiv__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.floor_divide(self, other)
        return _deferred(ops.floor_divide, self, other)

    def __rfloordiv__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.floor_divide(other, self)
        return _deferred(ops.floor_divide, self, other, swapped=True)

    def __mod__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.remainder(self, other)
        return _deferred(ops.remainder, self, other)

    def __rmod__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.remainder(other, self)
        return _deferred(ops.remainder, self, other, swapped=True)

    def __pow__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.power(self, other)
        return _deferred(ops.power, self, other)

    def __rpow__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.power(other, self)
        return _deferred(ops.power, self, other, swapped=True)

    def __matmul__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.matmul(self, other)
        return _deferred(ops.matmul, self, other)

    def __rmatmul__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.matmul(other, self)
        return _deferred(ops.matmul, self, other, swapped=True)

    def __and__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_and(self, other)
        return _deferred(ops.bitwise_and, self, other)

    def __rand__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_and(other, self)
        return _deferred(ops.bitwise_and, self, other, swapped=True)

    def __or__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_or(self, other)
        return _deferred(ops.bitwise_or, self, other)

    def __ror__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_or(other, self)
        return _deferred(ops.bitwise_or, self, other, swapped=True)

    def __xor__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_xor(self, other)
        return _deferred(ops.bitwise_xor, self, other)

    def __rxor__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.bitwise_xor(other, self)
        return _deferred(ops.bitwise_xor, self, other, swapped=True)

    def __lshift__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.left_shift(self, other)
        return _deferred(ops.left_shift, self, other)

    def __rlshift__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.left_shift(other, self)
        return _deferred(ops.left_shift, self, other, swapped=True)

    def __rshift__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.right_shift(self, other)
        return _deferred(ops.right_shift, self, other)

    def __rrshift__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.right_shift(other, self)
        return _deferred(ops.right_shift, self, other, swapped=True)

    def __divmod__(self: This, other: ArrayLike) -> tuple[Array, Array]:
        if type(other) in KNOWN_OPERANDS:
            return ops.divmod(self, other)
        return _deferred(ops.divmod, self, other)

    def __rdivmod__(self: This, other: ArrayLike) -> tuple[Array, Array]:
        if type(other) in KNOWN_OPERANDS:
            return ops.divmod(other, self)
        return _deferred(ops.divmod, self, other, swapped=True)

    def __neg__(self: This) -> Array:
        return ops.negative(self)

    def __abs__(self: This) -> Array:
        return ops.absolute(self)

    def __invert__(self: This) -> Array:
        return ops.invert(self)

    # An object of another class is never equal to an array: Python then compares identities.

    def __eq__(self: This, other: object) -> Array:  # type: ignore[override]  # elementwise, as NumPy's
        return NotImplemented if isinstance(other, _NEVER) else _deferred(ops.equal, self, other)

    def __ne__(self: This, other: object) -> Array:  # type: ignore[override]  # elementwise, as NumPy's
        if isinstance(other, _NEVER):
            return NotImplemented
        return _deferred(ops.not_equal, self, other)

    def __lt__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.less(self, other)
        return _deferred(ops.less, self, other)

    def __le__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.less_equal(self, other)
        return _deferred(ops.less_equal, self, other)

    def __gt__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.greater(self, other)
        return _deferred(ops.greater, self, other)

    def __ge__(self: This, other: ArrayLike) -> Array:
        if type(other) in KNOWN_OPERANDS:
            return ops.greater_equal(self, other)
        return _deferred(ops.greater_equal, self, other)


def _deferred(
    op: Callable[[ArrayLike, ArrayLike], R], x: Array, other: object, *, swapped: bool = False
) -> R:
    """Return the result for an operand that may be unknown, or ``NotImplemented``."""
    value = getattr(type(other), "__jax_array__", None)
    if value is not None:
        other = value(other)
    elif (
        getattr(other, "__array_priority__", 0) > x.__array_priority__
        or not isinstance(other, OPERANDS)
        or (isinstance(other, tuple) and type(other) is not tuple)
    ):
        return cast("R", NotImplemented)
    operand = cast("ArrayLike", other)
    return op(operand, x) if swapped else op(x, operand)


OPERANDS: Final = (*KNOWN_OPERANDS, Arithmetic, np.generic, SymbolicDim, *_REFUSED)
"""The classes of operands that have no operators of their own for arrays."""
