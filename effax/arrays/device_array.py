"""Arrays as users hold them: values on a device or in memory, and symbols of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard, final

import numpy as np

from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.config import allowed
from effax.arrays.not_array import NotAnArray
from effax.ir.build import lit
from effax.ir.dtypes import FLOAT0
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped
from effax.ir.syntax import Atom
from effax.ir.trace import Trace, current_trace
from effax.ir.types import ArrayType, array_type
from effax.tree import PyTree

if TYPE_CHECKING:
    from effax.lowering.xla import Buffer

__all__ = [
    "Array",
    "ArrayLike",
    "Axis",
    "DTypeLike",
    "DeviceArray",
    "TracedArray",
    "as_value",
    "from_numpy",
    "is_python_scalar",
    "not_an_array",
    "python_kind",
    "scalar",
]


NOT_NUMBERS = "OUSMm"
"""The kinds of NumPy's dtypes that arrays here do not have: objects, strings, times."""


@final
class DeviceArray(Array):
    """A value: in memory, in a buffer of a device, or in both (each made when it is needed)."""

    __slots__ = ("_buffer", "_type", "_value")

    def __init__(
        self, value: np.ndarray | None, type_: ArrayType, buffer: Buffer | None = None
    ) -> None:
        if value is not None:
            # The library promises that nobody writes here: a writable array is somebody else's.
            value.setflags(write=False)
        self._value = value
        self._buffer = buffer
        self._type = type_

    @property
    def type(self) -> ArrayType:
        return self._type

    def numpy(self) -> np.ndarray:
        if self._value is None:
            from effax.lowering import xla

            assert self._buffer is not None
            if self._type.dtype == FLOAT0:
                # A buffer of booleans stands for what has one value.
                self._value = np.zeros(self._type.shape, FLOAT0)
            else:
                self._value = xla.to_numpy(self._buffer)
        return self._value

    @property
    def buffer(self) -> Buffer:
        """The value in a buffer of the default device."""
        if self._buffer is None:
            from effax.lowering import xla

            assert self._value is not None
            self._buffer = xla.put(self._value, weak=self._type.weak)
        return self._buffer

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value is computed; gives the array itself."""
        if self._buffer is not None:
            from effax.lowering import xla

            xla.block(self._buffer)
        return self

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value's first byte on its device."""
        from effax.lowering import xla

        return xla.pointer(self.buffer)

    def __dlpack__(self, *, stream: int | None = None, **kwargs: PyTree) -> PyTree:
        return self.numpy().copy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.numpy().__dlpack_device__()
        return int(device[0]), int(device[1])

    def __repr__(self) -> str:
        shown = np.array2string(self.numpy(), separator=", ", prefix="Array(")
        weak = ", weak_type=True" if self._type.weak else ""
        return f"Array({shown}, dtype={self._type.dtype}{weak})"

    def __str__(self) -> str:
        return str(self.numpy())

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (np.array(self.numpy()), self._type))

    def __copy__(self) -> DeviceArray:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> DeviceArray:
        return self


def _restored(value: np.ndarray, type_: ArrayType) -> DeviceArray:
    return DeviceArray(value, type_)


@final
class TracedArray(Array):
    """A symbol: an array of a program that is being traced."""

    __slots__ = ("atom", "trace")

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.trace: Trace = trace
        self.atom: Atom = atom

    @property
    def type(self) -> ArrayType:
        return self.atom.type  # type: ignore[return-value]  # handles of references are TracedRefs

    def numpy(self) -> np.ndarray:
        return np.asarray(self.trace.value_of(self.atom))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        with _asked_by("NumPy takes values, and gets", "`effax.numpy`, which takes symbols"):
            return Array.__array__(self, dtype, copy)

    def __float__(self) -> float:
        with _asked_by("a Python number is made of", "`effax.numpy` in the place of `math`"):
            return Array.__float__(self)

    def __repr__(self) -> str:
        return f"Traced<{self.atom.type}> in {self.trace.label}"

    def __deepcopy__(self, memo: dict[int, object]) -> TracedArray:
        return self


@contextmanager
def _asked_by(what: str, instead: str) -> Iterator[None]:
    """An error about a value that is not known says who wants it, and what does not."""
    try:
        yield
    except ConcretizationError as error:
        error.what = f"{what} a symbol: {error.what}"
        error.remedy = f"use the functions of {instead}; or make the argument static"
        raise


def from_numpy(value: np.ndarray | np.generic, weak: bool = False) -> DeviceArray:
    """An array that takes over a NumPy value which nobody else writes to."""
    value = np.asarray(value)
    return DeviceArray(value, array_type(value.shape, value.dtype, weak))


def as_value(x: object, what: str = "an argument") -> Array:
    """The array that ``x`` stands for: itself, or a copy of a NumPy array or a Python scalar.

    Raises:
        IllTyped: ``x`` is not an array: a reference, a string, a list, ...
    """
    if isinstance(x, Array):
        return x
    if is_python_scalar(x):
        made = scalar(x)
        trace = current_trace()
        return made if trace is None else TracedArray(trace, lit(x, made.type))
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind in NOT_NUMBERS:
            raise IllTyped(
                f"{what} has a dtype that is not a number",
                expected="booleans, integers, floats or complex numbers",
                found=str(x.dtype),
            )
        return from_numpy(np.array(x, dtype=allowed(x.dtype)))
    raise not_an_array(x, what)


def is_python_scalar(x: object) -> TypeGuard[bool | int | float | complex]:
    """Whether ``x`` is a number of Python's own, whose dtype yields in promotion."""
    # NumPy's float64 and complex128 are subclasses of Python's types.
    return isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic)


def python_kind(x: bool | int | float | complex) -> type:
    """The one of Python's four types of numbers that the number is of (it may be of an enum)."""
    for kind in (bool, int, float):
        if isinstance(x, kind):
            return kind
    return complex


def scalar(x: bool | int | float | complex) -> DeviceArray:
    """The weakly typed array of a Python scalar. Raises BadArgument where it does not fit."""
    dtype = allowed(python_kind(x))
    try:
        value = np.asarray(x, dtype)
    except OverflowError:
        raise BadArgument(
            f"the Python integer {x} does not fit",
            expected=f"a value of {dtype}",
            found=str(x),
            remedy="give an explicit dtype, or enable 64-bit dtypes",
        ) from None
    return DeviceArray(value, array_type((), dtype, weak=not isinstance(x, bool)))


def not_an_array(x: object, what: str) -> IllTyped:
    """The error for something that stands where an array belongs."""
    if isinstance(x, NotAnArray):
        return x._not_an_array(what)
    return IllTyped(
        f"{what} is not an array",
        expected="an array or a number",
        found=f"{type(x).__name__}: {x!r:.80}",
        remedy="convert it with `numpy.array`" if isinstance(x, list | tuple) else None,
    )
