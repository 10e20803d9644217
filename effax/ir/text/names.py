"""Names of variables: their numbers, in letters."""

from __future__ import annotations

from typing import Final

_KEPT_NAMES: Final = 1 << 16


class _Names(dict[int, str]):
    """Names by number, computed on first use; those of small numbers are cached."""

    def __missing__(self, number: int) -> str:
        name = _encode(number)
        if number < _KEPT_NAMES:
            self[number] = name
        return name


def _encode(number: int) -> str:
    """Return the number in base 26, with letters as digits: ``a`` to ``z``, then ``ba``."""
    if number < 0:
        return f"?{number}"
    name = chr(97 + number % 26)
    while number := number // 26:
        name = chr(97 + number % 26) + name
    return name


VAR_NAMES: Final = _Names()
"""The printed name of a variable, by its number."""


def var_number(name: str) -> int | None:
    """Return the number of the variable that prints as ``name``, or None."""
    if not (name.isascii() and name.isalpha() and name.islower()):
        return None
    if name[0] == "a" and len(name) > 1:
        return None
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 97
    return number
