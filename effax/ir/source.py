"""Source locations of equations: file, line and name stack, cheap to record, read on demand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import NamedTuple

_PACKAGE = str(Path(__file__).resolve().parent.parent)


class Source(NamedTuple):
    """A place in the user's code. ``instruction`` is resolved to a line on access."""

    code: CodeType
    instruction: int
    scopes: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file of the user's line."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """The user's line, counted from 1."""
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def function(self) -> str:
        """The name of the function that contains the line."""
        return self.code.co_qualname

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} ({self.function})"
        return f"{where} in {'/'.join(self.scopes)}" if self.scopes else where

    def __reduce__(self) -> tuple[object, ...]:
        return (SavedSource, (self.file, self.line, self.function, self.scopes))


class SavedSource(NamedTuple):
    """A source location without its code object, as in a pickled program."""

    file: str
    line: int
    function: str
    scopes: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} ({self.function})"
        return f"{where} in {'/'.join(self.scopes)}" if self.scopes else where


class SourceInfo(NamedTuple):
    """The source of an equation as JAX's interpreters read it.

    Attributes:
        source: the place in the user's code, if it is known.
        name_stack: the names of the scopes around the equation, joined by ``/``.
    """

    source: Source | SavedSource | None
    name_stack: str


class DebugInfo(NamedTuple):
    """The user's names of the inputs and results of a program, as JAX's ``debug_info``.

    Attributes:
        arg_names: the names of the inputs, without those of constants.
        result_paths: the tree path of each result.
        traced_for: the transformation that traced it, if it is known.
        func_src_info: the name of the function and its place, if they are known.
    """

    arg_names: tuple[str, ...]
    result_paths: tuple[str, ...]
    traced_for: str = ""
    func_src_info: str = ""


class _Library(dict[str, bool]):
    """A cache, by file, of whether a frame is in this library.

    Keyed by name, since the hash of a code object reads all of its instructions each time.
    """

    def __missing__(self, file: str) -> bool:
        inside = self[file] = file.startswith(_PACKAGE)
        return inside


_library = _Library()


def is_library(code: CodeType) -> bool:
    """Return whether a frame of this code is in this library."""
    return _library[code.co_filename]


def caller(scopes: tuple[str, ...] = ()) -> Source | None:
    """Return the innermost frame outside of this library, or None."""
    frame = sys._getframe(1)
    while _library[frame.f_code.co_filename]:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Source(frame.f_code, frame.f_lasti, scopes)


def raised_at(error: BaseException) -> str | None:
    """Return the innermost line outside of this library in which an error was raised.

    Only frames between the handler and the raise are searched; None: no user code ran there.
    """
    found: str | None = None
    for code, line in _raising(error):
        if not _library[code.co_filename]:
            found = f"{code.co_filename}:{line} ({code.co_qualname})"
    return found


def _raising(error: BaseException) -> Iterator[tuple[CodeType, int]]:
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame.f_code, at.tb_lineno
        at = at.tb_next


def defined_at(function: object) -> str | None:
    """Return the definition line of a user's function or method; None for one of this library."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType) or _library[code.co_filename]:
        return None
    return f"{code.co_filename}:{code.co_firstlineno} ({code.co_qualname})"
