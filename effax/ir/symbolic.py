"""Symbolic sizes: polynomials of named sizes, as sizes of axes in types and parameters.

``b`` and ``4*b + 1`` are values of :class:`SymbolicDim`, which behaves as an integer whose value is
unknown. Arithmetic is exact and results have a normal form, so equal polynomials are equal values.
Equality is that of polynomials; an order is decided by bounds, and is an error where they do not
suffice. A named size is at least 1 (0 under ``b >= 0``) and satisfies its scope's constraints.

Source: JAX, "Shape polymorphism".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from math import inf
from typing import Final, NamedTuple, cast, final

from effax.ir.errors import InconclusiveDimension
from effax.lazy.dataclasses import dataclass


class SizeOp(NamedTuple):
    """``floordiv``, ``mod``, ``max`` or ``min`` of two sizes, where it is no polynomial."""

    name: str
    first: int
    second: int

    def __str__(self) -> str:
        return f"{self.name}({self.first}, {self.second})"


_Atom = str | SizeOp
_Monomial = tuple[tuple[_Atom, int], ...]
"""A product of powers of atoms, sorted by text; empty for the constant."""

_Terms = dict[_Monomial, int]
_ONE: Final[_Monomial] = ()

Bounds = tuple[float, float]


_TEXT: Final = "effax.ir.text.dims"
"""The module that reads constraints, by name, because it uses this one."""


@dataclass(frozen=True)
class SymbolicScope:
    """The constraints of named sizes; sizes of different scopes are not mixed.

    Attributes:
        constraints: comparisons such as ``"a >= 2*b"``, ``"a <= 64"``, ``"a == 4*b"``.
    """

    constraints: tuple[str, ...] = ()

    @cached_property
    def equal(self) -> Mapping[str, int]:
        """The sizes that equality constraints replace, by name."""
        return cast("Mapping[str, int]", import_module(_TEXT).equalities(self))

    @cached_property
    def at_least_zero(self) -> tuple[int, ...]:
        """The differences that inequality constraints require to be at least 0."""
        return cast("tuple[int, ...]", import_module(_TEXT).inequalities(self))


FREE: Final = SymbolicScope()
"""The scope without constraints."""


@final
class SymbolicDim:
    """A size that is unknown while a program is traced."""

    __slots__ = ("_hash", "_text", "scope", "terms")

    terms: tuple[tuple[_Monomial, int], ...]
    scope: SymbolicScope
    _hash: int
    _text: str

    def __init__(self, terms: _Terms, scope: SymbolicScope) -> None:
        ordered = sorted(terms.items(), key=_order)
        object.__setattr__(self, "terms", tuple(ordered))
        object.__setattr__(self, "scope", scope)
        object.__setattr__(self, "_hash", hash((self.terms, scope)))
        object.__setattr__(self, "_text", _shown(ordered))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a size is immutable: cannot set {name}")

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, SymbolicDim)
            and self.terms == other.terms
            and self.scope == other.scope
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return (SymbolicDim, (dict(self.terms), self.scope))

    def __add__(self, other: object) -> int:
        return _binary(self, other, _added, lambda x, y: x + y)

    def __sub__(self, other: object) -> int:
        return _binary(self, other, lambda x, y: _added(x, _scaled(y, -1)), lambda x, y: x - y)

    def __mul__(self, other: object) -> int:
        return _binary(self, other, _multiplied, lambda x, y: x * y)

    def __rsub__(self, other: object) -> int:
        return -self + other  # type: ignore[operator]  # any operand of an addition

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> int:
        return made(_scaled(dict(self.terms), -1), self.scope)

    def __pos__(self) -> int:
        return as_int(self)

    def __pow__(self, power: object) -> int:
        if type(power) is not int or power < 0:
            return _as_array(self, lambda x: x ** cast(int, power))
        result = 1
        for _ in range(power):
            result = result * as_int(self)
        return result

    def __floordiv__(self, other: object) -> int:
        return _divided(self, other, lambda x, y: x // y, 0)

    def __rfloordiv__(self, other: object) -> int:
        return _divided(other, self, lambda x, y: x // y, 0)

    def __mod__(self, other: object) -> int:
        return _divided(self, other, lambda x, y: x % y, 1)

    def __rmod__(self, other: object) -> int:
        return _divided(other, self, lambda x, y: x % y, 1)

    def __divmod__(self, other: object) -> tuple[int, int]:
        return self // other, self % other

    def __truediv__(self, other: object) -> int:
        return _as_array(self, lambda x: x / cast(int, other))

    def __rtruediv__(self, other: object) -> int:
        return _as_array(self, lambda x: cast(int, other) / x)

    def __lt__(self, other: object) -> bool:
        return not self >= other

    def __le__(self, other: object) -> bool:
        return _compared(other, self, f"{self} <= {other}")

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return _compared(self, other, f"{self} >= {other}")

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise inconclusive(f"{self} != 0")

    def __index__(self) -> int:
        raise InconclusiveDimension(
            f"the symbolic size {self} is used as a Python integer",
            expected="a size that is known",
            found=f"{self}",
            remedy="use a fixed size here, or an operation of arrays: `numpy.arange(x.shape[0])`",
        )

    __int__ = __index__
    __float__ = __index__


Size = int | SymbolicDim


def as_int(size: Size) -> int:
    """Return a size as the type checkers know it: code that computes with sizes takes both."""
    return cast(int, size)


def symbolic(x: object) -> SymbolicDim | None:
    """Return a symbolic size, or None for any other value."""
    return x if isinstance(x, SymbolicDim) else None


def is_symbolic_dim(x: object) -> bool:
    """Return whether a size is symbolic."""
    return isinstance(x, SymbolicDim)


def symbol(name: str, scope: SymbolicScope = FREE) -> int:
    """Return the size of this name, or the one that a constraint sets equal to it."""
    return scope.equal.get(name) or made({((name, 1),): 1}, scope)


def free_symbol(name: str, scope: SymbolicScope) -> int:
    """Return the size of this name."""
    return made({((name, 1),): 1}, scope)


def made(terms: _Terms, scope: SymbolicScope) -> int:
    """Return the size of these terms: an integer if it is constant."""
    left = {m: c for m, c in terms.items() if c}
    if not left:
        return 0
    if len(left) == 1 and _ONE in left:
        return left[_ONE]
    return as_int(SymbolicDim(left, scope))


def terms_of(size: object) -> _Terms:
    """Return the terms of a size."""
    found = symbolic(size)
    return {_ONE: cast(int, size)} if found is None else dict(found.terms)


def _order(term: tuple[_Monomial, int]) -> tuple[int, list[tuple[str, int]]]:
    """Return the key of a term: greater degrees first, the constant last."""
    return (-sum(p for _, p in term[0]), [(str(a), -p) for a, p in term[0]])


def _shown(terms: list[tuple[_Monomial, int]]) -> str:
    text = ""
    for monomial, c in terms:
        powers = "*".join([str(a) if p == 1 else f"{a}^{p}" for a, p in monomial])
        part = str(abs(c)) if not powers else powers if abs(c) == 1 else f"{abs(c)}*{powers}"
        sign = " - " if c < 0 else " + "
        text = (f"-{part}" if c < 0 else part) if not text else text + sign + part
    return text


def _added(x: _Terms, y: _Terms) -> _Terms:
    return {m: x.get(m, 0) + y.get(m, 0) for m in {**x, **y}}


def _scaled(x: _Terms, factor: int) -> _Terms:
    return {m: factor * c for m, c in x.items()}


def _multiplied(x: _Terms, y: _Terms) -> _Terms:
    result: _Terms = {}
    for m, c in x.items():
        for n, d in y.items():
            powers = dict(m)
            for atom, p in n:
                powers[atom] = powers.get(atom, 0) + p
            product = tuple(sorted(powers.items(), key=lambda item: str(item[0])))
            result[product] = result.get(product, 0) + c * d
    return result


def _scope_of(first: object, second: object) -> SymbolicScope:
    scopes = [s.scope for s in (symbolic(first), symbolic(second)) if s is not None]
    if scopes[0] != scopes[-1]:
        raise InconclusiveDimension(
            "sizes of different scopes are mixed",
            expected="sizes under the same constraints",
            found=f"{first} and {second}",
            remedy="make them in one call of `symbolic_shape`, or pass `scope`",
        )
    return scopes[0]


def _is_size(x: object) -> bool:
    return isinstance(x, int | SymbolicDim)


def _binary(
    x: SymbolicDim,
    y: object,
    rule: Callable[[_Terms, _Terms], _Terms],
    of_arrays: Callable[[int, int], int],
) -> int:
    if not _is_size(y):
        if isinstance(y, float | complex):
            return _as_array(x, lambda a: of_arrays(a, cast(int, y)))
        return cast(int, NotImplemented)
    return made(rule(dict(x.terms), terms_of(y)), _scope_of(x, y))


class _Arrays:
    """The conversion of sizes to arrays, which the layer of arrays sets."""

    convert: Callable[[SymbolicDim], int] | None = None


ARRAYS: Final = _Arrays()


def _as_array(x: SymbolicDim, of_array: Callable[[int], object]) -> int:
    """Apply an operation of arrays, whose result is an array."""
    assert ARRAYS.convert is not None
    return cast(int, of_array(ARRAYS.convert(x)))


def _divided(x: object, y: object, of_arrays: Callable[[int, int], int], part: int) -> int:
    """Return the quotient or the remainder of two sizes."""
    if not (_is_size(x) and _is_size(y)):
        return cast(int, NotImplemented)
    return divided(cast(int, x), cast(int, y))[part]


def divided(x: int, y: int) -> tuple[int, int]:
    """Return the floored quotient and the remainder of two sizes.

    The terms that the divisor divides leave the operation: ``(4*b + 3) // 4`` is ``b``.
    """
    scope = _scope_of(x, y)
    whole, rest = _long_division(terms_of(x), terms_of(y))
    quotient, left = made(whole, scope), made(rest, scope)
    low, high = bounds(left)
    if low >= 0 and high < bounds(y)[0]:
        return quotient, left
    if type(left) is int and type(y) is int:
        return quotient + left // y, left % y
    part = made({((SizeOp("floordiv", left, y), 1),): 1}, scope)
    return quotient + part, made({((SizeOp("mod", left, y), 1),): 1}, scope)


def _long_division(x: _Terms, y: _Terms) -> tuple[_Terms, _Terms]:
    """Return a polynomial quotient and the remainder."""
    lead, factor = min(y.items(), key=_order)
    quotient: _Terms = {}
    rest: _Terms = {}
    left = {m: c for m, c in x.items() if c}
    while left:
        m, c = min(left.items(), key=_order)
        ratio = _ratio(m, lead)
        if ratio is None or (c % factor if len(y) > 1 or lead else c // factor == 0):
            rest[m] = left.pop(m)
            continue
        part = {ratio: c // factor}
        quotient = _added(quotient, part)
        left = {n: d for n, d in _added(left, _scaled(_multiplied(part, y), -1)).items() if d}
        if m in left:
            rest[m] = left.pop(m)
    return quotient, rest


def _ratio(m: _Monomial, n: _Monomial) -> _Monomial | None:
    powers = dict(m)
    for atom, p in n:
        powers[atom] = powers.get(atom, 0) - p
    if any(p < 0 for p in powers.values()):
        return None
    return tuple([(a, p) for a, p in powers.items() if p])


def max_dim(x: int, y: int) -> int:
    """Return the maximum of two sizes."""
    return _extreme("max", x, y)


def min_dim(x: int, y: int) -> int:
    """Return the minimum of two sizes."""
    return _extreme("min", x, y)


def _extreme(name: str, x: int, y: int) -> int:
    if not (is_symbolic_dim(x) or is_symbolic_dim(y)):
        return max(x, y) if name == "max" else min(x, y)
    if at_least(x - y):
        return x if name == "max" else y
    if at_least(y - x):
        return y if name == "max" else x
    first, second = sorted((x, y), key=str)
    return made({((SizeOp(name, first, second), 1),): 1}, _scope_of(x, y))


def bounds(size: object) -> Bounds:
    """Return a lower and an upper bound of a size."""
    found = symbolic(size)
    if found is None:
        return cast(int, size), cast(int, size)
    low = high = 0.0
    for monomial, c in found.terms:
        part: Bounds = (c, c)
        for atom, p in monomial:
            own = _atom_bounds(atom, found.scope)
            for _ in range(p):
                part = _interval(part, own)
        low, high = low + part[0], high + part[1]
    return low, high


def _interval(x: Bounds, y: Bounds) -> Bounds:
    corners = [0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(corners), max(corners)


def _atom_bounds(atom: _Atom, scope: SymbolicScope) -> Bounds:
    if isinstance(atom, str):
        return _symbol_bounds(atom, scope)
    x, y = bounds(atom.first), bounds(atom.second)
    match atom.name:
        case "floordiv" if y[0] > 0:
            ends = [a if abs(a) == inf else a // b for a in x for b in y if b != inf]
            return (min(0, x[0]) if y[1] == inf else min(ends)), max(ends)
        case "mod" if y[0] > 0:
            return 0, y[1] - 1
        case "max":
            return max(x[0], y[0]), max(x[1], y[1])
        case "min":
            return min(x[0], y[0]), min(x[1], y[1])
        case _:
            return -inf, inf


def _symbol_bounds(name: str, scope: SymbolicScope) -> Bounds:
    """Return the bounds of a named size: those of constraints on it alone, else at least 1."""
    lows, high = list[float](), inf
    for difference in scope.at_least_zero:
        terms = terms_of(difference)
        c, k = terms.pop(((name, 1),), 0), terms.pop(_ONE, 0)
        if c and not terms:
            if c > 0:
                lows.append(-(k // c))
            else:
                high = min(high, k // -c)
    return max(0.0, *lows) if lows else 1.0, high


def least(name: str, size: int) -> int:
    """Return the least value of a name in a symbolic size."""
    found = symbolic(size)
    return 1 if found is None else int(_symbol_bounds(name, found.scope)[0])


def at_least(size: int) -> bool | None:
    """Return whether a size is at least 0; None where its bounds and constraints do not decide."""
    if _proved(size):
        return True
    return False if _proved(-size - 1) else None


def _proved(size: int) -> bool:
    if bounds(size)[0] >= 0:
        return True
    found = symbolic(size)
    if found is None:
        return False
    return any(
        bounds(size - factor * constraint)[0] >= 0
        for constraint in found.scope.at_least_zero
        for factor in _factors(found, constraint)
    )


def _factors(size: SymbolicDim, constraint: int) -> Iterator[int]:
    """Return the positive factors with which a multiple of a constraint cancels a term."""
    own = dict(size.terms)
    for m, c in terms_of(constraint).items():
        if m and own.get(m, 0) * c > 0 and own[m] % c == 0:
            yield own[m] // c


def _compared(x: object, y: object, text: str) -> bool:
    """Return whether ``x >= y``. Raises InconclusiveDimension where that is not decided."""
    if not (_is_size(x) and _is_size(y)):
        if isinstance(y, float) or isinstance(x, float):
            raise inconclusive(text)
        return cast(bool, NotImplemented)
    found = at_least(cast(int, x) - cast(int, y))
    if found is None:
        raise inconclusive(text)
    return found


def inconclusive(text: str) -> InconclusiveDimension:
    """Return the error for a comparison that is not decided for all sizes."""
    return InconclusiveDimension(
        f"the comparison {text} of symbolic sizes is inconclusive",
        expected="a comparison that holds for all sizes, or for none",
        found=text,
        remedy="pass `constraints` to `symbolic_shape`, such as `a >= b`, or use a fixed size",
    )
