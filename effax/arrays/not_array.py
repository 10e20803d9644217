"""The base of classes that are read before use as an array: every operator raises an error."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from effax.ir.errors import IllTyped


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
    __add__ = _refuse
    __radd__ = _refuse
    __sub__ = _refuse
    __rsub__ = _refuse
    __mul__ = _refuse
    __rmul__ = _refuse
    __truediv__ = _refuse
    __rtruediv__ = _refuse
    __floordiv__ = _refuse
    __rfloordiv__ = _refuse
    __mod__ = _refuse
    __rmod__ = _refuse
    __divmod__ = _refuse
    __rdivmod__ = _refuse
    __pow__ = _refuse
    __rpow__ = _refuse
    __matmul__ = _refuse
    __rmatmul__ = _refuse
    __neg__ = _refuse
    __pos__ = _refuse
    __abs__ = _refuse
    __invert__ = _refuse
    __lt__ = _refuse
    __le__ = _refuse
    __gt__ = _refuse
    __ge__ = _refuse
    __and__ = _refuse
    __rand__ = _refuse
    __or__ = _refuse
    __ror__ = _refuse
    __xor__ = _refuse
    __rxor__ = _refuse
    __lshift__ = _refuse
    __rlshift__ = _refuse
    __rshift__ = _refuse
    __rrshift__ = _refuse
