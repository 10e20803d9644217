"""Conditions of patterns on types, as text.

::

    f32[3]        float[n,_]        _[...]        Ref{f32[...]}        ~f32[]

A dtype is a name, a family ("bool", "int", "uint", "float", "complex"), "real", "number", or ``_``.
A size is an integer, ``_`` for any, or a name, which is the same size in the whole pattern;
``...`` is any shape. A type without ``Ref`` is that of an array. ``~`` demands a weak type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from effax.ir.dtypes import as_dtype, dtype_of_short_name, dtype_words, family
from effax.ir.errors import BadArgument
from effax.ir.state import cached
from effax.ir.types import ArrayType, RefType, Type

_ARRAY: Final = r"(?P<weak>~?)(?P<dtype>\w+)\[(?P<dims>[\w, .]*)\]"
TYPE_TEXT: Final = rf"(?P<ref>Ref\{{)?{_ARRAY}(?(ref)\}})"
_TYPE: Final = re.compile(TYPE_TEXT)

FAMILIES: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in ("bool", "int", "uint", "float", "complex")},
    "real": frozenset({"int", "uint", "float"}),
    "number": frozenset({"int", "uint", "float", "complex"}),
}


class HoleType(NamedTuple):
    """A condition on a type.

    Attributes:
        is_ref: whether it is the type of a reference.
        weak: whether it must be weak.
        dtype: the name of the dtype; None if families say it, or any will do.
        families: the families of the dtype; empty for all.
        dims: the sizes: integers, names, or None for any; None for any shape.
    """

    is_ref: bool
    weak: bool
    dtype: str | None
    families: frozenset[str]
    dims: tuple[int | str | None, ...] | None

    def matches(self, type_: Type, sizes: dict[str, int]) -> bool:
        """Return whether a type satisfies the condition; bind the named sizes."""
        if isinstance(type_, RefType) != self.is_ref:
            return False
        if self.weak and not (isinstance(type_, ArrayType) and type_.weak):
            return False
        if self.dtype is not None and type_.dtype.name != self.dtype:
            return False
        if self.families and family(type_.dtype) not in self.families:
            return False
        if self.dims is None:
            return True
        shape = type_.shape
        return len(shape) == len(self.dims) and all(
            map(_size_matches, self.dims, shape, [sizes] * len(shape))
        )


def _size_matches(expected: int | str | None, size: int, sizes: dict[str, int]) -> bool:
    if isinstance(expected, str):
        return sizes.setdefault(expected, size) == size
    return expected is None or expected == size


@cached(maxsize=None)
def hole_type(text: str) -> HoleType:
    """Return the condition of a text. Raises BadArgument for an invalid one."""
    found = _TYPE.fullmatch(text)
    if found is None:
        raise _invalid(text)
    word = found["dtype"]
    dtype: str | None = None
    if word not in FAMILIES and word != "_":
        if word not in dtype_words():
            raise _invalid(text)
        dtype = _dtype_name(word)
    families = FAMILIES.get(word, frozenset())
    return HoleType(bool(found["ref"]), bool(found["weak"]), dtype, families, _dims(text, found))


def _dtype_name(word: str) -> str:
    # Short names first: `i8` is int8 here, and int64 in NumPy.
    try:
        return str(dtype_of_short_name(word).name)
    except KeyError:
        return str(as_dtype(word).name)


def _dims(text: str, found: re.Match[str]) -> tuple[int | str | None, ...] | None:
    inner = found["dims"].replace(" ", "")
    if inner == "...":
        return None
    parts = inner.split(",") if inner else []
    return tuple([_size(text, part) for part in parts])


def _size(text: str, part: str) -> int | str | None:
    if part == "_":
        return None
    if part.isdigit():
        return int(part)
    if part.isidentifier():
        return part
    raise _invalid(text)


def _invalid(text: str) -> BadArgument:
    return BadArgument(
        "the type of a hole is not valid",
        expected="such as 'f32[3]', 'float[n,_]', '_[...]' or 'Ref{f32[...]}'",
        found=f"{text!r:.60}",
        remedy="a dtype, a family of dtypes or `_`; then the sizes, names of sizes, `_` or `...`",
    )
