"""Files that outlive a process: a header in JSON and parts in bytes, in a zip archive.

Equal contents give equal bytes. A reader takes what an older version wrote; of a newer format it
says so.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from effax.ir.errors import BadArgument, LoweringError, ParseError
from effax.ir.text.lexer import Lexer
from effax.ir.types import Type

FORMAT: Final = 1
"""The format that is written; all up to it are read."""

_HEADER: Final = "header.json"
_START: Final = (1980, 1, 1, 0, 0, 0)


class Artifact(NamedTuple):
    """What is in a file: ``header`` is of JSON's types, ``parts`` are bytes by name."""

    header: Mapping[str, object]
    parts: Mapping[str, bytes]


def pack(kind: str, artifact: Artifact) -> bytes:
    """The file of an artifact of that kind."""
    told = {"kind": kind, "format": FORMAT, **artifact.header}
    files = {_HEADER: json.dumps(told, indent=1, sort_keys=True).encode(), **artifact.parts}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # Without a date of its own an entry has that of the clock.
            archive.writestr(zipfile.ZipInfo(name, _START), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpack(kind: str, data: bytes) -> Artifact:
    """What :func:`pack` wrote.

    Raises:
        BadArgument: ``data`` is not bytes.
        LoweringError: ``data`` is something else, of another kind, or of a newer format.
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
            f"this is no {kind}, or it is damaged",
            expected="bytes that `serialize` gave",
            found=f"{bytes(data[:20])!r}: {error}",
        ) from error
    if found != kind:
        raise LoweringError(f"this is no {kind}", expected=kind, found=str(found))
    if version > FORMAT:
        raise LoweringError(
            f"this {kind} was written by a newer version of effax",
            expected=f"format {FORMAT} or older",
            found=f"format {version}",
            remedy="install that version, or write it again with this one",
        )
    return Artifact(header, parts)


DAMAGES: Final = (ParseError, KeyError, TypeError, ValueError, IndexError, AttributeError, EOFError)
"""What is raised where the parts of a file are not what they were."""


def damaged(error: Exception) -> LoweringError:
    """The error for a file of which a part is not what it was."""
    told = f"{error.args[0]} in it" if isinstance(error, KeyError) and error.args else str(error)
    return LoweringError("this file is damaged", expected=told)


def types_of(header: Mapping[str, object], name: str) -> tuple[Type, ...]:
    """The types that a header has under a name. Raises LoweringError where it has none."""
    texts = header.get(name)
    if not isinstance(texts, list):
        raise LoweringError("this file is damaged", expected=f"types as `{name}`")
    return tuple([Lexer(str(text)).type() for text in texts])


def numbers_of(header: Mapping[str, object], name: str) -> tuple[int, ...]:
    """The integers that a header has under a name. Raises LoweringError where it has none."""
    numbers = header.get(name)
    if not isinstance(numbers, list):
        raise LoweringError("this file is damaged", expected=f"integers as `{name}`")
    return tuple([int(n) for n in numbers])
