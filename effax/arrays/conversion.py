"""Conversion of NumPy arrays and Python scalars to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeGuard, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.config import allowed
from effax.arrays.device_array import DeviceArray
from effax.arrays.not_array import NotAnArray
from effax.arrays.traced_array import TracedArray
from effax.ir.build import lit
from effax.ir.errors import IllTyped, NotFitting
from effax.ir.late_text import LateText
from effax.ir.prims import DimValue
from effax.ir.sizes import unknown_size
from effax.ir.symbolic import ARRAYS, SymbolicDim, as_int
from effax.ir.trace import current_trace
from effax.ir.types import array_type

NOT_NUMBERS: Final = "OUSMm"
"""The kinds of NumPy dtypes without an array type: objects, strings, times."""


def from_numpy(value: np.ndarray | np.generic, weak: bool = False) -> DeviceArray:
    """Return an array that owns ``value``, which the caller must not write to afterwards."""
    value = np.asarray(value)
    return DeviceArray(value, array_type(value.shape, value.dtype, weak))


def as_value(x: object, what: str | LateText = "an argument") -> Array:
    """Return ``x`` as an array: itself, or a copy of a NumPy array or a Python scalar.

    Raises:
        IllTyped: ``x`` is not an array or number, but a reference, a string, a list, ...
        NotFitting: a 64-bit integer does not fit into 32 bits, and 64-bit dtypes are off.
    """
    if isinstance(x, Array):
        return x
    if is_python_scalar(x):
        made = scalar(x)
        trace = current_trace()
        return made if trace is None else TracedArray(trace, lit(x, made.type))
    if isinstance(x, np.ndarray | np.generic):
        if type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
            raise IllTyped(
                f"{what} is a masked array, whose mask would be lost",
                expected="an array without a mask",
                found=f"{x!r:.60}",
                remedy="fill it: `x.filled(0)`; or pass the mask as an array of its own",
            )
        if x.dtype.kind in NOT_NUMBERS:
            raise IllTyped(
                f"{what} has a dtype that is not a number",
                expected="booleans, integers, floats or complex numbers",
                found=str(x.dtype),
            )
        value = np.array(x, dtype=allowed(x.dtype, of_value=True))
        if value.dtype.kind in "iu" and value.dtype.itemsize < x.dtype.itemsize:
            _check_kept(value, x, what)
        return from_numpy(value)
    if isinstance(x, SymbolicDim):
        return dim_value(x)
    own = own_array(x)
    if own is not None:
        return as_value(own, what)
    raise not_an_array(x, what)


def own_array(x: object) -> object | None:
    """Return the array that an object of another class has as its value, by ``__jax_array__``."""
    value = getattr(type(x), "__jax_array__", None)
    return None if value is None else value(x)


def as_argument(x: object, what: str) -> Array:
    """Return :func:`as_value` of an argument of a traced function, which is not converted.

    Raises:
        IllTyped: ``x`` has ``__jax_array__``: in the function, its class would be lost.
    """
    if hasattr(type(x), "__jax_array__"):
        raise IllTyped(
            f"{what} is not an array, and a traced function does not convert it",
            expected="an array or a number",
            found=f"{type(x).__name__}: {x!r:.80}",
            remedy="pass `jnp.asarray(x)`, or register its class as a tree",
        )
    return as_value(x, what)


def _check_kept(narrow: np.ndarray, wide: np.ndarray | np.generic, what: str | LateText) -> None:
    """Raise NotFitting where an integer changed in a narrower dtype."""
    lost = np.asarray(wide)[narrow != wide]
    if lost.size:
        raise NotFitting(
            f"an integer of {what} does not fit",
            expected=f"values of {narrow.dtype}, since 64-bit dtypes are not enabled",
            found=f"{lost[0]}, of {lost.dtype}",
            remedy="pass an explicit dtype to `asarray`, or enable 64-bit dtypes",
        )


def dim_value(size: SymbolicDim) -> TracedArray:
    """Return a symbolic size as an integer of the current trace."""
    trace = current_trace()
    if trace is None:
        unknown_size(size, "an operation outside of traced functions")
    return TracedArray(trace, trace.emit(DimValue(as_int(size)), ())[0])


ARRAYS.convert = cast("Callable[[SymbolicDim], int]", dim_value)


def is_python_scalar(x: object) -> TypeGuard[bool | int | float | complex]:
    """Return whether ``x`` is a Python number, whose dtype yields in promotion."""
    # NumPy's float64 and complex128 are subclasses of Python's types.
    return isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic)


def python_kind(x: bool | int | float | complex) -> type:
    """Return the builtin type of a number, which may be of a subclass such as an enum."""
    for kind in (bool, int, float):
        if isinstance(x, kind):
            return kind
    return complex


def scalar(x: bool | int | float | complex) -> DeviceArray:
    """Return the weakly typed array of a Python scalar. Raises NotFitting on overflow."""
    dtype = allowed(python_kind(x))
    try:
        value = np.asarray(x, dtype)
    except OverflowError:
        raise NotFitting(
            f"the Python integer {x} does not fit",
            expected=f"a value of {dtype}",
            found=str(x),
            remedy="pass an explicit dtype, or enable 64-bit dtypes",
        ) from None
    return DeviceArray(value, array_type((), dtype, weak=not isinstance(x, bool)))


def not_an_array(x: object, what: str | LateText) -> IllTyped:
    """Return the error for a value that is used as an array and is none."""
    if isinstance(x, NotAnArray):
        return x._not_an_array(str(what))
    return IllTyped(
        f"{what} is not an array",
        expected="an array or a number",
        found=f"{type(x).__name__}: {x!r:.80}",
        remedy="convert it with `numpy.array`" if isinstance(x, list | tuple) else None,
    )
