"""The text of the parts of a program: literals, parameters, index brackets.

The printer and the parser share this module, so each form is defined once. Weak types are marked
with ``~``. The name of a variable is its number in letters, the same in every context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from itertools import count
from typing import Final

import numpy as np

from effax.ir.dtypes import FLOAT0
from effax.ir.indexing import Dim, Indexer, Mode, Pick, whole
from effax.ir.key_dtype import KeyDType
from effax.ir.primitive import ByReference
from effax.ir.symbolic import SymbolicDim, as_int, is_symbolic_dim
from effax.ir.syntax import Jaxpr, Lit
from effax.ir.types import ArrayType, RefType, Shape

LABEL: Final = "label"
"""The field with the user's name of a subjaxpr; it is printed first, as ``name``."""

MOST_VARIABLES: Final = 26**5
"""The bound of numbers of variables in text: passes allocate arrays of the greatest number."""


def lit_text(lit: Lit) -> str:
    """Return a literal with its type: ``2.0:f32[]``."""
    return str(lit)


def fields_of(owner: object) -> tuple[Field[object], ...]:
    """Return the fields of a dataclass, or of an instance of one; none of anything else."""
    return fields(owner) if is_dataclass(owner) else ()


def params_of(prim: object) -> list[tuple[str, str, object]]:
    """Return the parameters of a primitive, in the order of printing: (printed name, field, value).

    Unset parameters (None, or an enum at its default) are omitted.
    """
    shown = (f.name for f in fields_of(prim) if not _is_unset(f, getattr(prim, f.name)))
    names = sorted(shown, key=lambda name: (name != LABEL, name))
    return [("name" if n == LABEL else n, n, getattr(prim, n)) for n in names]


def _is_unset(field: Field[object], value: object) -> bool:
    return value == field.default and (value is None or isinstance(value, Enum))


def is_word(text: str) -> bool:
    """Return whether a label can be written without quotes."""
    inner = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    return inner.isascii() and inner.replace(".", "_").isidentifier()


REFERENCE: Final = "@"
"""The prefix of the name of an object without a text form."""


def value_text(
    value: object,
    program: Callable[[Jaxpr], str],
    names: Mapping[ByReference, str] | None = None,
) -> str:
    """Return the text of a parameter; ``program`` returns the text of a jaxpr in it.

    ``names`` are the names of objects by reference; by default their labels.
    """
    match value:
        case Jaxpr():
            return program(value)
        case ByReference():
            word = as_word(value.label)
            return REFERENCE + (word if names is None else names.get(value, word))
        case np.dtype() | KeyDType():
            return "float0" if value == FLOAT0 else str(value.name)
        case SymbolicDim():
            return size_text(as_int(value))
        case Indexer() if any(is_symbolic_dim(n) for dim in value.dims for n in dim):
            return _record_text(value, program)
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case Indexer():
            return index_text(value, None, [])
        case ArrayType() | RefType():
            return str(value)
        case frozenset():
            return f"frozenset({{{', '.join(sorted(value_text(v, program) for v in value))}}})"
        case tuple() if not hasattr(value, "_fields"):
            programs = value and all(isinstance(v, Jaxpr) for v in value)
            inner = (" " if programs else ", ").join([value_text(v, program) for v in value])
            return f"({inner},)" if len(value) == 1 and not programs else f"({inner})"
        case _:
            return _record_text(value, program)


def _record_text(value: object, program: Callable[[Jaxpr], str]) -> str:
    names = _record_fields(value)
    if names is None:
        return repr(value)
    inner = ", ".join(f"{n}={value_text(getattr(value, n), program)}" for n in names)
    return f"{type(value).__name__}({inner})"


def _record_fields(value: object) -> tuple[str, ...] | None:
    if isinstance(value, tuple):
        return tuple(getattr(value, "_fields", ()))
    return tuple(f.name for f in fields(value)) if is_dataclass(value) else None


def label_text(value: object) -> str:
    """Return the text of a label: without quotes if it is a word."""
    return value if isinstance(value, str) and is_word(value) else repr(value)


DYNAMIC: Final = "*"
"""The placeholder for an operand of an indexer that is written without its operands."""


def index_text(indexer: Indexer, shape: Shape | None, operands: Sequence[str]) -> str:
    """Return an indexer in brackets: ``[i,2,:3,j:j+4,6::-2]``, with ``;drop`` for that mode.

    ``;wrap`` states that all picks of operands wrap, ``;wrap(1)`` that the second one does.
    If the ``shape`` of the indexed value is known, ends may be omitted, and the whole is ``[...]``.
    Operands replace ``*``.
    """
    mode = _wraps_text(indexer)
    mode += "" if indexer.mode is Mode.CLIP else f";{indexer.mode.value}"
    if shape is not None and indexer.dims == whole(shape).dims:
        return f"[...{mode}]"
    feed = iter(operands)
    sizes: Sequence[int | None] = (None,) * len(indexer.dims) if shape is None else shape
    entries = [_dim_text(d, n, feed) for d, n in zip(indexer.dims, sizes, strict=False)]
    return f"[{','.join(entries)}{mode}]"


def _wraps_text(indexer: Indexer) -> str:
    wraps = [d.wraps for d in indexer.dims if isinstance(d, Pick) and d.at is None]
    if True not in wraps:
        return ""
    return ";wrap" if all(wraps) else f";wrap({','.join(str(i) for i, w in enumerate(wraps) if w)})"


def _dim_text(dim: Dim, size: int | None, feed: Iterator[str]) -> str:
    if isinstance(dim, Pick):
        return next(feed, DYNAMIC) if dim.at is None else size_text(dim.at)
    if dim.start is not None:
        return _slice_text(dim.start, dim.size, dim.step, size)
    start = next(feed, DYNAMIC)
    reach = dim.size * dim.step
    return f"{start}:{start}{'+' if dim.step > 0 else '-'}{abs(reach)}{_step_text(dim.step)}"


def size_text(size: int) -> str:
    """Return a size: in angle brackets where it is symbolic."""
    return f"<{size}>" if is_symbolic_dim(size) else str(size)


def _step_text(step: int) -> str:
    return "" if step == 1 else f":{step}"


def _slice_text(first: int, length: int, step: int, size: int | None) -> str:
    """Return ``first:stop:step``; the stop is omitted if the span extends to the axis' end."""
    if any(map(is_symbolic_dim, (first, length, size))):
        return f"{size_text(first)}:{size_text(first + length * step)}{_step_text(step)}"
    last = first + (length - 1) * step
    stop = first if length == 0 else last + (1 if step > 0 else -1)
    if step < 0:
        open_ended = length > 0 and stop < 0
    else:
        open_ended = step > 0 and size is not None and len(range(first, size, step)) == length
    start_text = "" if first == 0 and step > 0 else str(first)
    return f"{start_text}:{'' if open_ended else stop}{_step_text(step)}"


_NO_WORD: Final = re.compile(r"\W+", re.ASCII)


def as_word(label: str) -> str:
    """Return a label as an identifier: other characters become underscores."""
    word = _NO_WORD.sub("_", label).strip("_")
    return word if word.isidentifier() else "jaxpr"


def fresh_words(taken: frozenset[str]) -> Callable[[str], str]:
    """Return a function that returns the wanted word, with a number appended if it is taken."""
    used = set(taken)
    tries: dict[str, Iterator[int]] = {}

    def fresh(wanted: str) -> str:
        word = stem = as_word(wanted)
        while word in used:
            word = f"{stem}{next(tries.setdefault(stem, count(1)))}"
        used.add(word)
        return word

    return fresh
