"""Conversion of values to the part of an array or a reference that they are written to."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value, is_python_scalar, python_kind
from effax.arrays.indexing import Selection
from effax.arrays.operators import ops
from effax.arrays.promotion import known_value, yields
from effax.ir.dtypes import FAMILY_RANKS, DType, family, int_bounds, is_complex
from effax.ir.errors import IllTyped, NotFitting
from effax.ir.indexing import whole
from effax.ir.types import Shape, array_type


def cast_for_update(
    at: Selection, dtype: DType, value: object, what: str, truncates: bool = False
) -> Array:
    """Return a value in a dtype and in the shape of the selected part.

    Args:
        at: the part.
        dtype: the dtype of the array or the reference.
        value: an array, a number, nested lists of them.
        what: the name of the array or the reference in messages.
        truncates: whether a value that loses its kind or range is converted, with a warning.

    Raises:
        IllTyped: the kind would be lost, or the shape does not broadcast.
        BadArgument: a Python number does not fit.
    """
    if truncates and _is_of_higher_kind(value, dtype):
        value = as_value(value)
    if is_python_scalar(value):
        if not yields_to(value, dtype):
            raise _loses_kind(f"{type(value).__name__}: {value}", dtype, what)
        _check_range(value, dtype, what)
        if not isinstance(value, complex):
            return ops.filled(at.layout.shape, value, array_type((), dtype))
    if isinstance(value, list | tuple):
        value = ops.asarray(value)
    array = as_value(value, f"the value written to {what}")
    if not keeps_kind(array, dtype):
        error = _loses_kind(str(array.type), dtype, what)
        counts = array.weak_type and array.dtype.kind in "iu" and dtype.kind in "iu"
        if not truncates or counts:
            raise error
        text = f"scatter inputs have incompatible types: {error}"
        warnings.warn(text, FutureWarning, stacklevel=4)
    if is_complex(array.dtype) > is_complex(dtype):
        array = array.real
    array = ops.astype(array, dtype)
    if array.shape != at.shape:
        array = _broadcast(array, at.shape, what)
    return at.inward(array)


def _is_of_higher_kind(value: object, dtype: DType) -> bool:
    """Return whether a Python number loses a fraction, an imaginary part or a count in a dtype."""
    if isinstance(value, complex):
        return not is_complex(dtype)
    return dtype.kind in "iub" and isinstance(value, float | int if dtype.kind == "b" else float)


def yields_to(value: complex, dtype: DType) -> bool:
    """Return whether a Python number is of the kind of a dtype, or of a lesser one."""
    return FAMILY_RANKS[family(allowed(python_kind(value)))] <= FAMILY_RANKS[family(dtype)]


def fill_of(value: object, dtype: DType, what: str) -> Array:
    """Return a value in the dtype of what it fills. Raises IllTyped, BadArgument, as an update."""
    return cast_for_update(
        Selection.of(whole(np.shape(cast("Array", value))), ()), dtype, value, what
    )


def _loses_kind(found: str, dtype: DType, what: str) -> IllTyped:
    return IllTyped(
        f"a value of this dtype does not fit into {what}",
        expected=str(dtype),
        found=found,
        remedy=f"convert it first: `value.astype('{dtype}')`",
    )


def _broadcast(array: Array, shape: Shape, what: str) -> Array:
    sizes = array.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    fits = len(sizes) <= len(shape) and all(
        n in (1, m) for n, m in zip(reversed(sizes), reversed(shape), strict=False)
    )
    if not fits:
        raise IllTyped(
            f"a value does not broadcast to the part of {what} that is written",
            expected=f"shape {shape}, or one that broadcasts to it",
            found=f"shape {array.shape}",
        )
    return ops.broadcast_to(ops.reshape(array, sizes), shape)


def keeps_kind(array: Array, dtype: DType) -> bool:
    """Return whether writing the array into ``dtype`` keeps kind and, for integers, range."""
    have, want = family(array.dtype), family(dtype)
    if array.dtype == dtype:
        return True
    if "key" in (have, want):
        return False
    if array.weak_type and FAMILY_RANKS[have] <= FAMILY_RANKS[want]:
        return known_value(array) is None or yields(array.type, dtype, array)
    if FAMILY_RANKS[have] != FAMILY_RANKS[want]:
        return FAMILY_RANKS[have] < FAMILY_RANKS[want]
    if have in ("float", "complex"):
        return True
    (low, high), (least, greatest) = int_bounds(dtype), int_bounds(array.dtype)
    return low <= least and greatest <= high


def _check_range(value: bool | int | float | complex, dtype: DType, what: str) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and dtype.kind in "iu":
        low, high = int_bounds(dtype)
        if not low <= value <= high:
            raise NotFitting(
                f"the Python integer {value} does not fit into {what}",
                expected=f"{low} to {high}, for {dtype}",
                found=str(value),
            )
