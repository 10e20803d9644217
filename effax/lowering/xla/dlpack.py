"""Read DLPack capsules without consuming them.

A capsule that is not consumed releases its memory when it is freed, so a view of the memory keeps
the capsule alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Final, cast

import ml_dtypes
import numpy as np

from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument

CPU: Final = 1
"""DLPack's number for the memory of the host."""

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_FLOAT8: Final = {
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}


def _type_codes() -> dict[DType, tuple[int, int]]:
    codes: dict[DType, tuple[int, int]] = {
        np.dtype(np.bool_): (_BOOL, 8),
        np.dtype(ml_dtypes.bfloat16): (_BFLOAT, 16),
    }
    for bits in (8, 16, 32, 64):
        codes[np.dtype(f"int{bits}")] = (_INT, bits)
        codes[np.dtype(f"uint{bits}")] = (_UINT, bits)
    for bits in (16, 32, 64):
        codes[np.dtype(f"float{bits}")] = (_FLOAT, bits)
    for bits in (64, 128):
        codes[np.dtype(f"complex{bits}")] = (_COMPLEX, bits)
    for name, code in _FLOAT8.items():
        codes[np.dtype(getattr(ml_dtypes, name))] = (code, 8)
    return codes


TYPE_CODES: Final = _type_codes()
"""The dtypes that buffers support, and DLPack's (code, bits) of each.

Dtypes narrower than a byte are packed in XLA's memory, so they have no NumPy view.
"""

_DTYPES: Final = {code: dtype for dtype, code in TYPE_CODES.items()}


class _Tensor(ctypes.Structure):
    """DLPack's ``DLTensor``, the first member of a ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("vector_size", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )

    data: int | None
    ndim: int
    code: int
    bits: int
    vector_size: int
    shape: Sequence[int]
    strides: Sequence[int]
    byte_offset: int


# A separate prototype: the argument types of functions of ctypes.pythonapi are global.
_capsule_pointer = cast(
    Callable[[object, bytes], int],
    ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    ),
)
_word_at = ctypes.c_size_t.from_address


def memory_of(nbytes: int) -> Callable[[int], memoryview]:
    """Return a function from an address to a writable, unowned view of that many bytes."""
    # NumPy accepts any object with the buffer protocol; its stubs for Python 3.11 name a few types.
    return cast("Callable[[int], memoryview]", (ctypes.c_char * nbytes).from_address)


def data_pointer(capsule: object) -> int:
    """Return the address in a capsule made by jaxlib, whose offset is always 0."""
    return _word_at(_capsule_pointer(capsule, b"dltensor")).value


def as_numpy(capsule: object) -> np.ndarray:
    """Return a view of the capsule's memory, which keeps the capsule alive.

    Raises:
        BadArgument: buffers do not support the dtype.
    """
    tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.vector_size != 1:
        raise BadArgument(
            "buffers do not support the elements of this DLPack tensor",
            expected=f"one of {', '.join(sorted(known.name for known in TYPE_CODES))}",
            found=f"type code {tensor.code}, {tensor.bits} bits, vectors of {tensor.vector_size}",
            remedy="convert it before it is exported",
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = _steps(tensor, shape, dtype.itemsize)
    reach = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    below = -sum(offset for offset in reach if offset < 0)
    above = sum(offset for offset in reach if offset > 0) + dtype.itemsize
    start = (tensor.data or 0) + tensor.byte_offset
    memory = memory_of(below + above)(start - below)
    vars(memory)["capsule"] = capsule
    return np.ndarray(shape, dtype, memory, below, steps)


def _steps(tensor: _Tensor, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes; a contiguous tensor may omit them."""
    if tensor.strides:
        return tuple(tensor.strides[axis] * itemsize for axis in range(tensor.ndim))
    steps = [itemsize]
    for size in shape[:0:-1]:
        steps.append(steps[-1] * size)
    return tuple(reversed(steps[: len(shape)]))
