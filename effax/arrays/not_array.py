"""The base of classes that are read before use as an array: every operator raises an error."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from effax.arrays.arithmetic import OPERANDS
from effax.ir.dtypes import is_key_dtype
from effax.ir.errors import IllTyped

if TYPE_CHECKING:
    import numpy as np

    from effax.ir.types import ArrayType


class NotAnArray:
    """The base of references and of views of them."""

    __slots__ = ()

    @abstractmethod
    def _as_array(self, *args: object, **kwargs: object) -> np.ndarray:
        """Raise RefError with the way to read it."""

    @abstractmethod
    def _not_an_array(self, what: str) -> IllTyped:
        """Return the error for a value in the place of an array."""

    def _refuse(self, *args: object, **kwargs: object) -> np.ndarray:
        return self._as_array(*args, **kwargs)

    def _refuse_known(self, other: object) -> np.ndarray:
        """Raise RefError, or return ``NotImplemented`` for an operand of an unknown class."""
        known = isinstance(other, (NotAnArray, *OPERANDS))
        return self._as_array() if known else cast("np.ndarray", NotImplemented)

    __array__ = _refuse
    __array_ufunc__ = _refuse
    __bool__ = _refuse
    __iter__ = _refuse
    __reversed__ = _refuse
    __contains__ = _refuse
    __int__ = _refuse
    __float__ = _refuse
    __complex__ = _refuse
    __index__ = _refuse
    __round__ = _refuse
    __add__ = _refuse_known
    __radd__ = _refuse_known
    __sub__ = _refuse_known
    __rsub__ = _refuse_known
    __mul__ = _refuse_known
    __rmul__ = _refuse_known
    __truediv__ = _refuse_known
    __rtruediv__ = _refuse_known
    __floordiv__ = _refuse_known
    __rfloordiv__ = _refuse_known
    __mod__ = _refuse_known
    __rmod__ = _refuse_known
    __divmod__ = _refuse_known
    __rdivmod__ = _refuse_known
    __pow__ = _refuse_known
    __rpow__ = _refuse_known
    __matmul__ = _refuse_known
    __rmatmul__ = _refuse_known
    __neg__ = _refuse
    __pos__ = _refuse
    __abs__ = _refuse
    __invert__ = _refuse
    __lt__ = _refuse_known
    __le__ = _refuse_known
    __gt__ = _refuse_known
    __ge__ = _refuse_known
    __and__ = _refuse_known
    __rand__ = _refuse_known
    __or__ = _refuse_known
    __ror__ = _refuse_known
    __xor__ = _refuse_known
    __rxor__ = _refuse_known
    __lshift__ = _refuse_known
    __rlshift__ = _refuse_known
    __rshift__ = _refuse_known
    __rrshift__ = _refuse_known


def as_numbers(value: np.ndarray, type_: ArrayType) -> np.ndarray:
    """Return the value of an array of this type. Raises IllTyped for keys, which are no numbers."""
    if value.dtype.names is not None and is_key_dtype(type_.dtype):
        raise IllTyped(
            "an array of random keys cannot be converted to numbers, or to a NumPy array",
            expected="an array of numbers or booleans",
            found=str(type_),
            remedy="`random.key_data` returns the words of keys",
        )
    return value
