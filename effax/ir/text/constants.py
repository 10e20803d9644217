"""The constants of closed programs as text: ``let a:f32[3] = [0.0, 1.0, 2.0] in``.

Elements are in row-major order; where all have the same bits, one is written. A number that no
decimal determines, such as a negative nan, is written as its bits: ``0xffc00000``. References,
values without elements (tracers), and arrays of more than :data:`MOST` different elements are
objects that are passed by name, ``@table``.
"""

from __future__ import annotations

import cmath
import re
from typing import Final

import numpy as np

from effax.ir.dtypes import DType, is_inexact_dtype
from effax.ir.text.lexer import NUMBER, Lexer
from effax.ir.types import ArrayType, Type

MOST: Final = 1000
"""The greatest number of elements that are written, as in NumPy's own text."""

_BITS: Final = re.compile(r"0x([0-9a-f]{1,32})(?!\w)", re.ASCII)
_BOOLEAN: Final = re.compile(r"(True|False)(?!\w)", re.ASCII)


def constant_texts(value: object, type_: Type) -> list[str] | None:
    """Return the texts of the elements, or of the one that all are; None for a value by name."""
    if not isinstance(type_, ArrayType):
        return None
    try:
        array = np.asarray(value)
    except TypeError:
        # A tracer, which has no value.
        return None
    if array.dtype.itemsize == 0 or (array.shape, array.dtype) != (type_.shape, type_.dtype):
        return None
    flat = array.reshape(-1)
    bits = np.frombuffer(flat.tobytes(), f"V{array.dtype.itemsize}")
    if flat.size and (bits == bits[0]).all():
        return [_text(flat[0], array.dtype)]
    if flat.size > MOST:
        return None
    return [_text(x, array.dtype) for x in flat]


def _text(x: np.generic, dtype: DType) -> str:
    """Return the shortest decimal with the bits of the number, or the bits."""
    for text in (str(x), repr(x.item())):
        found = NUMBER.fullmatch(text) or _BOOLEAN.fullmatch(text)
        if found is not None and _number(text, dtype) == x.tobytes():
            return text
    return hex(int.from_bytes(x.tobytes(), "little"))


def _number(text: str, dtype: DType) -> bytes | None:
    """Return the bits of a number in text, or None if the dtype does not have it."""
    kind = type(np.zeros((), dtype).item())
    try:
        value = text == "True" if kind is bool else kind(text)
        with np.errstate(all="ignore"):
            made = np.asarray(value, dtype)
    except (ValueError, OverflowError):
        return None
    read = made.item()
    overflows = not cmath.isfinite(read) and "inf" not in text and "nan" not in text
    return None if overflows or (kind is int and read != value) else made.tobytes()


def read_constant(scan: Lexer, type_: ArrayType) -> np.ndarray:
    """Read elements in brackets, or the one that all are."""
    start = scan.pos
    dtype, size = type_.dtype, int(np.prod(type_.shape))
    if not scan.take("["):
        made = np.frombuffer(_element(scan, dtype), dtype)
        return np.broadcast_to(made.reshape(()), type_.shape)
    parts: list[bytes] = []
    while not scan.take("]"):
        parts.append(_element(scan, dtype))
        if not scan.take(",") and not scan.at("]"):
            scan.fail("unexpected text in a constant", expected="`,` or `]`")
    if len(parts) != size:
        scan.fail(
            "a constant has another number of elements than its type",
            expected=f"{size}, or one without brackets",
            found=str(len(parts)),
            pos=start,
        )
    return np.frombuffer(b"".join(parts), dtype).reshape(type_.shape)


def _element(scan: Lexer, dtype: DType) -> bytes:
    start = scan.pos
    found = scan.looking(_BITS) if is_inexact_dtype(dtype) else None
    if found is not None:
        scan.advance(found)
        return _of_bits(scan, int(found.group(1), 16), dtype, start)
    found = scan.looking(NUMBER) or scan.looking(_BOOLEAN)
    if found is None:
        scan.fail("an element is missing", expected="a number, a boolean, or bits such as `0x1f`")
    scan.advance(found)
    boolean = found.group() in ("True", "False")
    bits = None if boolean != (dtype == np.bool_) else _number(found.group(), dtype)
    if bits is None:
        scan.fail("an element is not of the dtype", expected=str(dtype), pos=start)
    return bits


def _of_bits(scan: Lexer, bits: int, dtype: DType, pos: int) -> bytes:
    try:
        return bits.to_bytes(dtype.itemsize, "little")
    except OverflowError:
        scan.fail("an element has too many bits", expected=f"{8 * dtype.itemsize} of them", pos=pos)
