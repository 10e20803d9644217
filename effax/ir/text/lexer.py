"""The lexer: a position in a text, matching at it, and errors that show it."""

from __future__ import annotations

import re
from math import isinf, prod
from typing import Final, NoReturn
from unicodedata import category, east_asian_width

from effax.ir.analysis.faults import literal_fault
from effax.ir.dtypes import as_dtype, dtype_of_short_name, int_bounds
from effax.ir.errors import BadArgument, EffaxError, ParseError
from effax.ir.symbolic import FREE, SymbolicScope, is_symbolic_dim
from effax.ir.syntax import Lit, Scalar
from effax.ir.text.dims import read_dims
from effax.ir.types import ArrayType, RefKind, Shape, Type, array_type, ref_type

_SPACE: Final = re.compile(r"(?:\s+|#[^\n]*)*")
_TOKEN: Final = re.compile(r"[^\s,;()\[\]{}]+|\S")

_REAL: Final = r"(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf)"
_COMPLEX: Final = rf"\([-+]?{_REAL}[-+]{_REAL}j\)"
_NUMBER: Final = rf"[-+]?{_REAL}j?(?!\w)|{_COMPLEX}"
_ARRAY: Final = (
    r"(~?)(key<\w+>|[a-z]\w*)\[((?:\d+(?:,\d+)*)|[-+*^(),\w ]*[A-Za-z_][-+*^(),\w ]*)?\]"
)

NUMBER: Final = re.compile(_NUMBER, re.ASCII)
TYPE: Final = re.compile(rf"(?:([A-Z]\w*)\{{{_ARRAY}\}}|{_ARRAY})", re.ASCII)
LITERAL: Final = re.compile(rf"({_NUMBER}|True|False):{_ARRAY}", re.ASCII)
IN: Final = re.compile(rf"in\s*\((?!{_COMPLEX[2:]}:)", re.ASCII)
WORD: Final = re.compile(r"[^\W\d]\w*")
NAME: Final = re.compile(r"[a-z]+(?!\w)")

SHOWN: Final = 40
"""The number of characters of an invalid value that an error shows."""

LONGEST: Final = 160
"""Errors show only a part of longer lines."""

LEAST, GREATEST = int_bounds(as_dtype("int64"))
"""The bounds of sizes and positions."""

UNSIGNED: Final = 2 * GREATEST + 1
"""The greatest integer of a parameter."""

_REF_KINDS: Final = {kind.value: kind for kind in RefKind}


class Lexer:
    """A text and a position in it. Methods that read leave the position after the text read."""

    __slots__ = ("line_start", "pos", "scope", "text")

    line_start: int
    pos: int
    scope: SymbolicScope

    def __init__(self, text: str, scope: SymbolicScope = FREE) -> None:
        self.text: str = text
        self.scope = scope
        self.pos = 0
        self.line_start = 0
        self.skip()

    @property
    def column(self) -> int:
        """The column of the position, from 0."""
        return self.pos - self.line_start

    def skip(self) -> None:
        """Skip space and comments."""
        start = self.pos
        found = _SPACE.match(self.text, start)
        if found is not None and found.end() > start:
            self.pos = found.end()
            newline = self.text.rfind("\n", start, self.pos)
            if newline >= 0:
                self.line_start = newline + 1

    def at(self, mark: str) -> bool:
        """Return whether ``mark`` is next."""
        return self.text.startswith(mark, self.pos)

    def looking(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return a match of the pattern at the position, or None."""
        return pattern.match(self.text, self.pos)

    def take(self, mark: str) -> bool:
        """Read ``mark`` and the space after it if it is next; return whether it was."""
        if not self.at(mark):
            return False
        self.pos += len(mark)
        self.skip()
        return True

    def expect(self, mark: str, where: str) -> None:
        """Read ``mark``. Raises ParseError unless it is next."""
        if not self.take(mark):
            self.fail(f"unexpected text in {where}", expected=f"`{mark}`")

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Read a match of the pattern. Raises ParseError unless it is next."""
        found = self.looking(pattern)
        if found is None:
            self.fail(f"{what} is missing", expected=what)
        self.advance(found)
        return found

    def advance(self, found: re.Match[str]) -> None:
        """Move after a match and the space after it."""
        self.pos = found.end()
        self.skip()

    def fail(
        self,
        what: str,
        expected: str | None = None,
        remedy: str | None = None,
        pos: int | None = None,
        found: str | None = None,
    ) -> NoReturn:
        """Raise a ParseError that shows a position, by default the current one."""
        here = self.pos if pos is None else pos
        token = _TOKEN.match(self.text, here)
        if found is None:
            found = f"`{token.group()}`" if token else "the end of the text"
        raise self.located(ParseError(what, expected, found, remedy), here)

    def failed(self, error: EffaxError, pos: int) -> NoReturn:
        """Raise an error of another part of the library as a ParseError."""
        wrapped = ParseError(error.what, error.expected, error.found, error.remedy)
        raise self.located(wrapped, pos) from error

    def located(self, error: ParseError, pos: int) -> ParseError:
        """Return the error, with the line and the column of a position."""
        start = self.text.rfind("\n", 0, pos) + 1
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else len(self.text)]
        error.line = self.text.count("\n", 0, pos) + 1
        error.column = pos - start + 1
        error.source = f"line {error.line}, column {error.column}"
        error.excerpt = _excerpt(line, pos - start)
        return error

    def type(self) -> Type:
        """Read a type: ``f32[3]``, ``~f32[]``, ``Ref{f32[3]}``."""
        start = self.pos
        found = self.match(TYPE, "a type")
        kind = found.group(1)
        if kind is None:
            weak, name, sizes = found.group(5, 6, 7)
            return self.array_type(weak, name, sizes, start)
        if kind not in _REF_KINDS:
            self.fail("unknown kind of reference", expected=", ".join(_REF_KINDS), pos=start)
        weak, name, sizes = found.group(2, 3, 4)
        return ref_type(self.array_type(weak, name, sizes, start), _REF_KINDS[kind])

    def array_type(self, weak: str, name: str, sizes: str | None, pos: int) -> ArrayType:
        """Return the array type of the parts that ``TYPE`` or ``LITERAL`` matched."""
        try:
            dtype = dtype_of_short_name(name)
        except KeyError:
            self.fail("unknown dtype", expected="a name such as f32, bf16, i8, bool", pos=pos)
        try:
            shape = self._shape(sizes) if sizes else ()
        except BadArgument as error:
            self.failed(error, pos)
        except ValueError:
            self.fail("a size has too many digits", pos=pos)
        if prod([n for n in shape if not is_symbolic_dim(n)]) > GREATEST:
            self.fail(
                "an array has too many elements",
                expected=f"at most {GREATEST}",
                found=f"{short_text(str(shape))}",
                pos=pos,
            )
        return array_type(shape, dtype, bool(weak))

    def _shape(self, sizes: str) -> Shape:
        plain = sizes.replace(",", "").isdigit()
        return tuple(map(int, sizes.split(","))) if plain else read_dims(sizes, self.scope)

    def literal(self, found: re.Match[str]) -> Lit:
        """Return the literal that ``LITERAL`` matched here. Raises ParseError if ill typed."""
        start = self.pos
        self.advance(found)
        text, weak, name, sizes = found.groups()
        made = Lit(self.scalar(text, start), self.array_type(weak, name, sizes, start))
        wanted = literal_fault(made)
        if wanted is not None:
            self.fail(
                "a literal does not have its type",
                expected=wanted,
                found=f"`{short_text(found.group())}`",
                pos=start,
            )
        return made

    def number(self, found: re.Match[str]) -> Scalar:
        """Return the number that was matched here."""
        start = self.pos
        self.advance(found)
        return self.scalar(found.group(), start)

    def scalar(self, text: str, pos: int) -> Scalar:
        """Return the value of a number or a boolean at ``pos``."""
        try:
            value = scalar_value(text)
        except ValueError:
            # Python reads no more digits than `sys.set_int_max_str_digits` says.
            self.fail("a number has too many digits", found=f"{len(text)} of them", pos=pos)
        if "inf" not in text and isinstance(value, float | complex) and _overflows(value):
            self.fail(
                "a number is out of the range of Python's floats",
                expected="a finite number, or `inf`",
                found=f"`{short_text(text)}`",
                pos=pos,
            )
        return value

    def parameter(self, found: re.Match[str]) -> Scalar:
        """Return the number of a parameter that was matched here; an integer has 64 bits."""
        start = self.pos
        value = self.number(found)
        if isinstance(value, int) and not LEAST <= value <= UNSIGNED:
            self._out_of_range(found, start, UNSIGNED)
        return value

    def position(self, found: re.Match[str]) -> int:
        """Return the position, size or step of an index that was matched here."""
        start = self.pos
        value = self.number(found)
        assert isinstance(value, int)
        if not LEAST <= value <= GREATEST:
            self._out_of_range(found, start, GREATEST)
        return value

    def _out_of_range(self, found: re.Match[str], pos: int, greatest: int) -> NoReturn:
        self.fail(
            "an integer is out of range",
            expected=f"an integer from {LEAST} to {greatest}",
            found=f"`{short_text(found.group())}`",
            pos=pos,
        )


def short_text(text: str) -> str:
    """Return the text, cut off after some characters."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _overflows(value: complex) -> bool:
    return isinf(value.real) or isinf(value.imag)


def _excerpt(line: str, at: int) -> str:
    """Return a line, or the part of a long line around ``at``, with a caret under ``at``."""
    if len(line) > LONGEST:
        first, last = max(0, at - LONGEST // 2), at + LONGEST // 2
        before, after = "..." if first else "", "..." if last < len(line) else ""
        line, at = f"{before}{line[first:last]}{after}", at - first + len(before)
    return f"  {line}\n  {_as_wide_as(line[:at])}^"


def _as_wide_as(text: str) -> str:
    """Return blanks as wide as ``text`` on a screen: tabs stay, wide characters take two."""
    return "".join(["\t" if c == "\t" else " " * _columns(c) for c in text])


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def scalar_value(text: str) -> Scalar:
    """Return the Python value of a number or a boolean, as ``repr`` writes them."""
    if text in ("True", "False"):
        return text == "True"
    if "j" in text:
        return complex(text)
    return int(text) if text.lstrip("+-").isdigit() else float(text)
