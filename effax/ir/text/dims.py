"""Text of symbolic sizes: ``4*b + 1``, ``floordiv(b, 2)``, and of constraints ``a >= b``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from effax.ir.errors import BadArgument
from effax.ir.sizes import symbols_of
from effax.ir.symbolic import FREE, SymbolicScope, free_symbol, max_dim, min_dim, symbol

_TOKEN: Final = re.compile(r"\s*(\d+|[A-Za-z_]\w*|[-+*^(),])", re.ASCII)
_COMPARISON: Final = re.compile(r"(.*?)(>=|<=|==)(.*)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_FUNCTIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max_dim,
    "min": min_dim,
}

Symbols = Callable[[str], int]


def read_dim(text: str, scope: SymbolicScope = FREE) -> int:
    """Return the size that a text describes. Raises BadArgument for other texts."""
    return _read(text, lambda name: symbol(name, scope))


def read_dims(text: str, scope: SymbolicScope = FREE) -> tuple[int, ...]:
    """Return the sizes of a text with commas: ``b, 4*b, 3``."""
    return tuple([read_dim(part, scope) for part in split_dims(text)])


def split_dims(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts if len(parts) > 1 or parts[0].strip() else []


def equalities(scope: SymbolicScope) -> Mapping[str, int]:
    """Return the sizes that constraints ``name == size`` replace."""
    found: dict[str, int] = {}
    for text in scope.constraints:
        left, relation, right = _comparison(text)
        if relation == "==":
            name = left.strip()
            value = _read(right, lambda n: found.get(n) or free_symbol(n, scope))
            if not _NAME.fullmatch(name) or name in symbols_of(value) or name in found:
                _bad(text, "a name that occurs on the left side only, once, before `==`")
            found[name] = value
    return found


def inequalities(scope: SymbolicScope) -> tuple[int, ...]:
    """Return the differences that constraints require to be at least 0."""
    found: list[int] = []
    for text in scope.constraints:
        left, relation, right = _comparison(text)
        if relation != "==":
            # Without bounds: those are what is read here.
            small, large = (left, right) if relation == "<=" else (right, left)
            found.append(_read(f"{large} - ({small})", lambda name: symbol(name, scope)))
    return tuple(found)


def _comparison(text: str) -> tuple[str, str, str]:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        _bad(text, "a comparison: `a >= b`, `a <= 8`, `a == 2*b`")
    left, relation, right = match.groups()
    return left, relation, right


def _bad(text: str, expected: str) -> NoReturn:
    raise BadArgument("a symbolic size or constraint cannot be read", expected, repr(text))


def _read(text: str, symbols: Symbols) -> int:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            _bad(text, "integers, names, `+`, `-`, `*`, `^`, floordiv, mod, max, min")
        tokens.append(found.group(1))
        at = found.end()
    reader = _Reader(text, tokens, symbols)
    result = reader.sum()
    if reader.tokens:
        _bad(text, "one size")
    return result


class _Reader:
    """A recursive descent over tokens."""

    def __init__(self, text: str, tokens: list[str], symbols: Symbols) -> None:
        self.text = text
        self.tokens = tokens[::-1]
        self.symbols = symbols

    def take(self, token: str) -> bool:
        if self.tokens and self.tokens[-1] == token:
            self.tokens.pop()
            return True
        return False

    def sum(self) -> int:
        total = -self.product() if self.take("-") else self.product()
        while self.tokens and self.tokens[-1] in ("+", "-"):
            total = total + self.product() if self.take("+") else self._minus(total)
        return total

    def _minus(self, total: int) -> int:
        self.take("-")
        return total - self.product()

    def product(self) -> int:
        result = self.power()
        while self.take("*"):
            result = result * self.power()
        return result

    def power(self) -> int:
        base = self.atom()
        if not self.take("^"):
            return base
        power = self.tokens.pop() if self.tokens else ""
        if not power.isdigit():
            _bad(self.text, "an integer after `^`")
        made: int = base ** int(power)
        return made

    def atom(self) -> int:
        token = self.tokens.pop() if self.tokens else ""
        if token == "(":
            inner = self.sum()
            self.close(")")
            return inner
        if token.isdigit():
            return int(token)
        if token in _FUNCTIONS and self.take("("):
            first = self.sum()
            self.close(",")
            second = self.sum()
            self.close(")")
            return _FUNCTIONS[token](first, second)
        if not _NAME.fullmatch(token):
            _bad(self.text, "an integer, a name or `(`")
        return self.symbols(token)

    def close(self, token: str) -> None:
        if not self.take(token):
            _bad(self.text, f"`{token}`")
