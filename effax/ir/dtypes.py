"""Dtypes: names, families, and JAX's promotion lattice with weak types.

The weak dtype of a Python scalar yields to the dtype of an array. The lattice is that of JAX's
"type promotion semantics"; the promoted dtype is the join (least upper bound) of its operands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

import ml_dtypes
import numpy as np

from effax.ir.key_dtype import KeyDType, key_dtype_of_record, key_dtype_of_tag
from effax.ir.state import cached

DType = np.dtype[np.generic]
"""A NumPy dtype, those of ml_dtypes included; or a ``KeyDType``, which has its attributes."""

_SHORT: Final[dict[str, str]] = {
    "bool": "bool",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    "int2": "i2",
    "int4": "i4",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint2": "u2",
    "uint4": "u4",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}

FLOAT0: Final[DType] = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents of integers and booleans: it has one value."""

BOOL: Final[DType] = np.dtype(np.bool_)
INT32: Final[DType] = np.dtype(np.int32)
UINT8: Final[DType] = np.dtype(np.uint8)
UINT32: Final[DType] = np.dtype(np.uint32)
FLOAT32: Final[DType] = np.dtype(np.float32)


def as_dtype(dtype: object) -> DType:
    """Return the NumPy dtype that ``dtype`` names. Raises TypeError."""
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, KeyDType):
        return cast(DType, dtype)
    if dtype is None:
        raise TypeError("expected a dtype, got None (which NumPy takes for float64)")
    if isinstance(dtype, str) and dtype in _ML_NAMES:
        dtype = getattr(ml_dtypes, dtype)
    made: DType = np.dtype(cast(type, dtype))  # NumPy checks the object itself
    return made


_ML_NAMES: Final = frozenset(
    name for name in dir(ml_dtypes) if name.startswith(("bfloat", "float", "int", "uint"))
)


@cached(maxsize=None)
def short_name(dtype: DType) -> str:
    """Return the name used in printed programs, such as ``f32`` or ``bf16``."""
    if dtype == FLOAT0:
        return "float0"
    return _SHORT.get(dtype.name, dtype.name.replace("float", "f"))


@cached(maxsize=None)
def width(dtype: DType) -> int:
    """Return the number of bits of an element; dtypes of fewer than 8 take a byte in memory."""
    found = re.match(r"u?int([24])$|float([46])_", dtype.name)
    return 8 * dtype.itemsize if found is None else int(found[1] or found[2])


def dtype_words() -> frozenset[str]:
    """Return all names of dtypes, in types (``f32``) and in parameters (``float32``)."""
    full = {*_SHORT, *_ML_NAMES}
    return frozenset({"float0", *full, *(short_name(as_dtype(name)) for name in full)})


@cached(maxsize=None)
def dtype_of_short_name(name: str) -> DType:
    """Return the dtype of a printed name. Raises KeyError."""
    if name == "float0":
        return FLOAT0
    if name.startswith("key<"):
        return cast(DType, key_dtype_of_tag(name[4:-1]))
    for full, short in _SHORT.items():
        if short == name:
            return as_dtype(full)
    for full in _ML_NAMES:
        if full.replace("float", "f") == name:
            return as_dtype(full)
    raise KeyError(name)


@cached(maxsize=None)
def is_array_dtype(dtype: DType) -> bool:
    """Return whether arrays can have the dtype; strings, dates, objects and records cannot."""
    known = dtype.name in _SHORT or dtype.name in _ML_NAMES
    return known or dtype == FLOAT0 or as_key_dtype(dtype) is not None


def as_key_dtype(dtype: object) -> KeyDType | None:
    """Return the dtype of random keys, given as such or as NumPy's; None for any other."""
    if isinstance(dtype, np.dtype):
        return None if dtype.names is None else key_dtype_of_record(dtype)
    return dtype if isinstance(dtype, KeyDType) else None


def is_key_dtype(dtype: object) -> bool:
    """Return whether the dtype is that of random keys."""
    return isinstance(dtype, KeyDType)


@cached(maxsize=None)
def family(dtype: DType) -> str:
    """Return ``bool``, ``int``, ``uint``, ``float``, ``complex``, ``key`` or ``void``."""
    if dtype.kind in "biufc":
        return {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}[dtype.kind]
    name = dtype.name
    if name.startswith(("bfloat", "float")) and dtype != FLOAT0:
        return "float"
    if is_key_dtype(dtype):
        return "key"
    return "uint" if name.startswith("uint") else "int" if name.startswith("int") else "void"


FAMILY_RANKS: Final[dict[str, int]] = {
    "key": -1,
    "bool": 0,
    "int": 1,
    "uint": 1,
    "float": 2,
    "complex": 3,
}
"""The order of families: a value is representable in a family of its rank or a greater one.
No number is representable in ``key``, and ``void`` has no rank."""


def is_float(dtype: DType) -> bool:
    """Return whether the dtype is a real floating one."""
    return family(dtype) == "float"


def is_complex(dtype: DType) -> bool:
    """Return whether the dtype is a complex one."""
    return family(dtype) == "complex"


def is_inexact_dtype(dtype: DType) -> bool:
    """Return whether values of the dtype can have tangents."""
    return family(dtype) in ("float", "complex")


def is_integer(dtype: DType) -> bool:
    """Return whether the dtype is a signed or unsigned integer."""
    return family(dtype) in ("int", "uint")


def itemsize_bits(dtype: object) -> int:
    """Return the number of bits of an element, which may be fewer than its bytes have.

    >>> effax.dtypes.itemsize_bits("int4"), effax.dtypes.itemsize_bits("bfloat16")
    (4, 16)
    """
    named = as_dtype(dtype)
    small = re.fullmatch(r"(?:u?int|float)(\d)(?:_\w+)?", named.name)
    return int(small[1]) if small else 8 * named.itemsize


def unsigned_of_subbyte(dtype: DType) -> DType | None:
    """Return the unsigned dtype of the width of a dtype narrower than a byte; None for others.

    XLA packs such numbers; the host's memory has a byte for each.
    """
    return _UNSIGNED_OF_SUBBYTE.get(dtype)


_UNSIGNED_OF_SUBBYTE: Final = {
    as_dtype(name): as_dtype(f"uint{bits}")
    for bits, names in ((2, "int2 uint2"), (4, "int4 uint4 float4_e2m1fn"))
    for name in names.split()
}


@cached(maxsize=None)
def int_bounds(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer dtype."""
    info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]  # its stub has no annotation
    return int(info.min), int(info.max)


# The Hasse diagram: each dtype's immediate successors; ``i*``, ``f*``, ``c*`` are the weak dtypes.
_LATTICE: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("bfloat16", "float16", "c*"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}


def _ancestors() -> dict[str, frozenset[str]]:
    above: dict[str, frozenset[str]] = {}

    def visit(node: str) -> frozenset[str]:
        if node not in above:
            above[node] = frozenset({node}).union(*map(visit, _LATTICE[node]))
        return above[node]

    for node in _LATTICE:
        visit(node)
    return above


_ABOVE: Final = _ancestors()

_WEAK_NODE: Final[dict[str, str]] = {
    "bool": "bool",
    "int": "i*",
    "uint": "i*",
    "float": "f*",
    "complex": "c*",
}


def _node(dtype: DType, weak: bool) -> str:
    return _WEAK_NODE[family(dtype)] if weak else dtype.name


def _join(nodes: Sequence[str]) -> str:
    # The common upper bound that is below all others; a lattice has exactly one.
    common = frozenset.intersection(*(_ABOVE[node] for node in nodes))
    for node in common:
        if common <= _ABOVE[node]:
            return node
    raise TypeError(f"no common dtype for {', '.join(nodes)}")


_WEAK_DTYPE: Final[dict[str, str]] = {"i*": "int64", "f*": "float64", "c*": "complex128"}


def promote(operands: Sequence[tuple[DType, bool]], wide: bool = False) -> tuple[DType, bool]:
    """Return the promoted dtype of operands of these (dtype, weak), and whether it is weak.

    Args:
        operands: one pair per operand, at least one.
        wide: whether 64-bit dtypes are enabled; otherwise 64 bits become 32.

    Raises:
        TypeError: a dtype is not in the lattice, and the operands differ.
    """
    return _promote(tuple(operands), wide)


@cached(maxsize=4096)
def _promote(operands: tuple[tuple[DType, bool], ...], wide: bool) -> tuple[DType, bool]:
    weak = all(weak for _, weak in operands)
    first = operands[0][0]
    if all(dtype == first for dtype, _ in operands):
        return (first if wide else canonical(first)), weak
    strong = {dtype for dtype, weak in operands if not weak}
    if len(strong) == 1 and (only := next(iter(strong))).name not in _LATTICE:
        # A narrow float outside of the lattice keeps its dtype beside weak scalars.
        narrow_float = is_float(only) and not any(is_complex(dtype) for dtype, _ in operands)
        if narrow_float:
            return only, False
    small = [d for d in strong if is_integer(d) and unsigned_of_subbyte(d) is not None]
    if len(small) == 1 and all(
        d in (small[0], BOOL) or (weak and is_integer(d)) for d, weak in operands
    ):
        # Integers narrower than a byte combine with booleans and Python integers alone.
        return small[0], False
    unknown = [d for d, weak in operands if not weak and d.name not in _LATTICE]
    if unknown and is_key_dtype(unknown[0]):
        raise TypeError(f"{unknown[0]} is the dtype of random keys, which combine with keys only")
    if unknown:
        raise TypeError(f"{unknown[0]} promotes to no other dtype; convert it explicitly")
    # Weak operands alone are joined as if they were strong, and stay weak.
    node = _join([d.name if weak else _node(d, w) for d, w in operands])
    if node in _WEAK_DTYPE:
        dtype, weak = as_dtype(_WEAK_DTYPE[node]), True
    else:
        dtype = as_dtype(node)
    return (dtype if wide else canonical(dtype)), weak


_NARROWED: Final[dict[str, str]] = {
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "complex128": "complex64",
}


@cached(maxsize=None)
def canonical(dtype: DType) -> DType:
    """Return the dtype that replaces ``dtype`` while 64-bit dtypes are disabled."""
    narrow = _NARROWED.get(dtype.name)
    return dtype if narrow is None else as_dtype(narrow)


@cached(maxsize=None)
def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real part of values of ``dtype``."""
    return as_dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype))


@cached(maxsize=None)
def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype whose parts represent values of ``dtype``."""
    return as_dtype(
        {"float64": "complex128", "complex128": "complex128"}.get(dtype.name, "complex64")
    )
