"""Serialized artifacts: a JSON header and binary parts in a zip archive.

Equal contents have equal bytes. Files of older formats are read; for a newer format an error is
raised.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from effax.ir.errors import BadArgument, LoweringError, ParseError
from effax.ir.symbolic import FREE, SymbolicScope
from effax.ir.text.lexer import Lexer
from effax.ir.types import ArrayType, Type

FORMAT: Final = 1
"""The format that is written; all formats up to it are read."""

_HEADER: Final = "header.json"
_START: Final = (1980, 1, 1, 0, 0, 0)


class Artifact(NamedTuple):
    """The contents of a file: ``header`` has JSON types, ``parts`` are bytes by name."""

    header: Mapping[str, object]
    parts: Mapping[str, bytes]


def pack(kind: str, artifact: Artifact) -> bytes:
    """Return the bytes of an artifact of the kind."""
    header = {"kind": kind, "format": FORMAT, **artifact.header}
    files = {_HEADER: json.dumps(header, indent=1, sort_keys=True).encode(), **artifact.parts}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # A fixed date: by default an entry has the current time, and bytes would differ.
            archive.writestr(zipfile.ZipInfo(name, _START), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpack(kind: str, data: bytes) -> Artifact:
    """Read an artifact that :func:`pack` wrote.

    Raises:
        BadArgument: ``data`` is not bytes.
        LoweringError: ``data`` is damaged, of another kind, or of a newer format.
    """
    given: object = data
    if not isinstance(given, bytes | bytearray | memoryview):
        raise BadArgument(f"{kind}s are read from bytes", "bytes", f"{given!r:.60}")
    try:
        with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(parts.pop(_HEADER))
        found, version = header["kind"], int(header["format"])
    except (zipfile.BadZipFile, zlib.error, struct.error, OSError, RuntimeError, *DAMAGES) as error:
        raise LoweringError(
            f"this is not a valid {kind}, or it is damaged",
            expected="bytes that `serialize` returned",
            found=f"{bytes(data[:20])!r}: {error}",
        ) from error
    if found != kind:
        raise LoweringError(f"this is not a valid {kind}", expected=kind, found=str(found))
    if version > FORMAT:
        raise LoweringError(
            f"this {kind} was written by a newer version of effax",
            expected=f"format {FORMAT} or older",
            found=f"format {version}",
            remedy="install that version, or write it again with this one",
        )
    return Artifact(header, parts)


DAMAGES: Final = (ParseError, KeyError, TypeError, ValueError, IndexError, AttributeError, EOFError)
"""The exceptions that are raised while a damaged file is read."""


def damaged(error: Exception) -> LoweringError:
    """Return the error for a damaged file."""
    missing = isinstance(error, KeyError) and error.args
    expected = f"{error.args[0]} in it" if missing else str(error)
    return LoweringError("this file is damaged", expected=expected)


def types_of(
    header: Mapping[str, object], name: str, scope: SymbolicScope = FREE
) -> tuple[Type, ...]:
    """Return the types under a key of the header. Raise LoweringError if there are none."""
    texts = header.get(name)
    if not isinstance(texts, list):
        raise LoweringError("this file is damaged", expected=f"types as `{name}`")
    return tuple([Lexer(str(text), scope).type() for text in texts])


def numbers_of(header: Mapping[str, object], name: str) -> tuple[int, ...]:
    """Return the integers under a key of the header. Raise LoweringError if there are none."""
    numbers = header.get(name)
    if not isinstance(numbers, list):
        raise LoweringError("this file is damaged", expected=f"integers as `{name}`")
    return tuple([int(n) for n in numbers])


def contents_of(data: bytes, type_: ArrayType) -> np.ndarray:
    """Return the array of these bytes, in row-major order."""
    if not data:
        return np.zeros(type_.shape, type_.dtype)
    made: np.ndarray = np.frombuffer(data, type_.dtype).reshape(type_.shape)
    return made
