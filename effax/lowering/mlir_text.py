"""Types and scalars in MLIR's notation, exact to the bit."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from effax.ir.dtypes import (
    BOOL,
    FLOAT0,
    DType,
    dtype_of_short_name,
    dtype_words,
    family,
    real_dtype,
)
from effax.ir.errors import LoweringError
from effax.ir.state import cached
from effax.ir.syntax import Scalar
from effax.ir.types import ArrayType, array_type, check_size

_FLOATS: Final[dict[str, str]] = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
# XLA aborts the process when it folds constants of 6 bits.
_SMALL_FLOAT: Final = re.compile(r"float([48])_(e\d+m\d+\w*)")


@cached(maxsize=None)
def element(dtype: DType) -> str:
    """Return the element type, such as ``f32``, ``i1``, ``ui8``, ``complex<f64>``.

    A ``float0`` has one value and no counterpart; a boolean represents it.

    Raises:
        LoweringError: XLA has no such type.
    """
    if dtype == FLOAT0:
        return "i1"
    kind = family(dtype)
    if kind == "bool":
        return "i1"
    if kind in ("int", "uint"):
        return dtype.name.replace("uint", "ui").replace("int", "i")
    small = _SMALL_FLOAT.fullmatch(dtype.name)
    if small is not None:
        return f"f{small[1]}{small[2].upper()}"
    if dtype.name not in _FLOATS:
        raise LoweringError(
            "XLA does not support this dtype",
            expected=", ".join(_FLOATS),
            found=str(dtype),
            remedy="convert to one of these first",
        )
    return _FLOATS[dtype.name]


_TENSOR: Final = re.compile(r"tensor<((?:\d+x)*)([^<>?*]+|complex<\w+>)>")


@cached(maxsize=None)
def _dtypes() -> dict[str, DType]:
    """Dtypes by their element type."""
    found: dict[str, DType] = {element(BOOL): BOOL}
    for word in sorted(dtype_words() - {"float0"}):
        try:
            dtype = dtype_of_short_name(word)
            found.setdefault(element(dtype), dtype)
        except (KeyError, LoweringError):
            # A long name, or a dtype that XLA lacks.
            continue
    return found


@cached(maxsize=None)
def type_of_tensor(text: str) -> ArrayType:
    """Return the inverse of :func:`tensor`.

    Raises:
        LoweringError: it is not an array of static shape, or NumPy has no such element type.
    """
    found = _TENSOR.fullmatch(text)
    dtype = _dtypes().get(found[2]) if found else None
    if found is None or dtype is None:
        raise LoweringError(
            "an argument or a result of `main` is not an array of static shape",
            expected="a type such as tensor<2x3xf32>",
            found=text,
        )
    return array_type(tuple([int(n) for n in found[1].split("x") if n]), dtype)


@cached(maxsize=None)
def tensor(type_: ArrayType) -> str:
    """Return the type of an array: ``tensor<2x3xf32>``. Raise BadArgument if it is too large."""
    check_size(type_)
    sizes = "".join([f"{n}x" for n in type_.shape])
    return f"tensor<{sizes}{element(type_.dtype)}>"


def scalar(value: Scalar, dtype: DType) -> str:
    """Return a value as an attribute, rounded to ``dtype``; as its bits if it is not finite."""
    kind = family(dtype)
    if kind in ("bool", "void"):
        return "true" if value else "false"
    if kind in ("int", "uint"):
        return str(int(value.real))
    if kind == "complex":
        value, part = complex(value), real_dtype(dtype)
        return f"({scalar(value.real, part)}, {scalar(value.imag, part)})"
    with np.errstate(over="ignore"):
        rounded = np.asarray(value.real, dtype)
    number = float(rounded)
    if not np.isfinite(number):
        bits = int.from_bytes(rounded.astype(dtype.newbyteorder("<")).tobytes(), "little")
        return f"0x{bits:0{2 * dtype.itemsize}X}"
    digits, mark, exponent = repr(number).partition("e")
    # MLIR requires a point in a decimal number.
    return f"{digits}{mark}{exponent}" if "." in digits else f"{digits}.0{mark}{exponent}"


def dense(value: np.ndarray, type_: ArrayType) -> str:
    """Return the operation for an array, which has a byte or more an element."""
    little = value.astype(value.dtype.newbyteorder("<"))
    return f'stablehlo.constant dense<"0x{little.tobytes().hex().upper()}"> : {tensor(type_)}'


def constant(value: Scalar, type_: ArrayType) -> str:
    """Return the operation for an array of ``type_`` whose elements all equal ``value``."""
    return f"stablehlo.constant dense<{scalar(value, type_.dtype)}> : {tensor(type_)}"


def quoted(text: str) -> str:
    """Return a string literal."""
    return (
        '"'
        + "".join([c if c.isprintable() and c not in '"\\' else f"\\{ord(c):02X}" for c in text])
        + '"'
    )


def attribute(value: object) -> str:
    """Return a Python value as an attribute.

    Raises:
        LoweringError: it is no number, boolean, string, dtype, NumPy array or a list of these.
    """
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : i64"
        case float():
            return f"{scalar(value, np.dtype(np.float64))} : f64"
        case str():
            return quoted(value)
        case np.dtype():
            return element(value)
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            return dense(array, array_type(array.shape, array.dtype)).removeprefix(
                "stablehlo.constant "
            )
        case list() | tuple():
            return f"[{', '.join(map(attribute, value))}]"
        case dict():
            return f"{{{', '.join([f'{k} = {attribute(v)}' for k, v in value.items()])}}}"
        case _:
            raise LoweringError(
                "an attribute of a program has no text form",
                expected="a number, boolean, string, dtype, NumPy array, list or dict of these",
                found=f"{type(value).__name__}: {value!r:.80}",
            )
