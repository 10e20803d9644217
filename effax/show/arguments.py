"""Types of arguments as text: ``f32[3], {"w": f32[3,3], "b": Ref{f32[3]}}, scale=2.0``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from effax.ir.text.lexer import NUMBER, TYPE, Lexer
from effax.ir.text.parameter_parser import QUOTED, read_string

_KEYWORD: Final = re.compile(r"([^\W\d]\w*)\s*=")
_WORD: Final = re.compile(r"[^\W\d]\w*(?![\w\[{])")
_WORDS: Final[dict[str, object]] = {"True": True, "False": False, "None": None}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}

EXPECTED: Final = (
    "a type such as f32[3] or Ref{f32[3]}, a number, or a tuple, list or dict of these"
)


class Arguments(NamedTuple):
    """Arguments of a call, of which the leaves are types and numbers."""

    args: tuple[object, ...]
    kwargs: dict[str, object]


def read_arguments(text: str) -> Arguments:
    """Return the arguments that ``text`` describes.

    Args:
        text: values separated by commas, those by name last. A value is a type as programs print
            it, a number, a truth value, None, a string, or a tuple, list or dict of values.

    Raises:
        ParseError: the text does not parse; the error shows where.
    """
    scan = Lexer(text)
    try:
        return _arguments(scan)
    except RecursionError:
        scan.fail("values are nested too deeply", pos=0)


def _arguments(scan: Lexer) -> Arguments:
    args: list[object] = []
    kwargs: dict[str, object] = {}
    while scan.pos < len(scan.text):
        start = scan.pos
        keyword = scan.looking(_KEYWORD)
        if keyword is not None:
            scan.advance(keyword)
            name = keyword.group(1)
            if name in kwargs:
                scan.fail("an argument is repeated", pos=start)
            kwargs[name] = _value(scan)
        elif kwargs:
            scan.fail("an argument by position follows one by name", expected="name=...")
        else:
            args.append(_value(scan))
        if not scan.take(",") and scan.pos < len(scan.text):
            scan.fail("the arguments are not valid here", expected="`,`")
    return Arguments(tuple(args), kwargs)


def _value(scan: Lexer) -> object:
    """Parse one value."""
    for opening, closing in _CLOSING.items():
        if scan.take(opening):
            return _dict(scan) if opening == "{" else _items(scan, closing)
    if scan.looking(TYPE):
        return scan.type()
    number = scan.looking(NUMBER)
    if number is not None:
        return scan.number(number)
    if scan.looking(QUOTED):
        return read_string(scan)
    word = scan.looking(_WORD)
    if word is None or word.group() not in _WORDS:
        scan.fail("this is not the type of an argument", expected=EXPECTED)
    scan.advance(word)
    return _WORDS[word.group()]


def _items(scan: Lexer, closing: str) -> object:
    """Parse the rest of a tuple or a list; one value in parentheses without a comma is itself."""
    items: list[object] = []
    comma = True
    while not scan.take(closing):
        if not comma:
            scan.fail("a list of values is not valid here", expected=f"`,` or `{closing}`")
        items.append(_value(scan))
        comma = scan.take(",")
    if closing == "]":
        return items
    return items[0] if len(items) == 1 and not comma else tuple(items)


def _dict(scan: Lexer) -> dict[object, object]:
    """Parse the rest of a dict."""
    items: dict[object, object] = {}
    comma = True
    while not scan.take("}"):
        if not comma:
            scan.fail("a dict is not valid here", expected="`,` or `}`")
        start = scan.pos
        key = _value(scan)
        if not isinstance(key, str | int):
            scan.fail("a key of a dict is a string or an integer", pos=start)
        scan.expect(":", "a dict")
        items[key] = _value(scan)
        comma = scan.take(",")
    return items
