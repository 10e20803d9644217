"""The leaves of patterns: holes for atoms, literals, indices and parameters."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isnan

from effax.ir.errors import BadArgument
from effax.ir.syntax import Scalar
from effax.lazy.dataclasses import dataclass
from effax.transforms.optimize.hole_types import hole_type


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the remedy for an unknown name that resembles a known one; else None."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else None


def check_name(name: object, what: str) -> None:
    """Raise BadArgument unless a name is a word."""
    if not isinstance(name, str) or not name.isidentifier():
        raise BadArgument(f"{what} needs a name", "a word, such as 'x'", f"{name!r:.60}")
    if name in ("True", "False", "inf", "nan"):
        raise BadArgument(f"{what} has the name of a number", "another word", name)


@dataclass(frozen=True, slots=True)
class Hole:
    """Match any atom, the same in each occurrence.

    ``Hole("x", "float[n,_]")`` matches atoms of such a type: a dtype or a family of dtypes, then
    sizes, names of sizes, ``_`` for any size, or ``...`` for any shape; ``Ref{f32[...]}`` for
    references. Without a type, it matches any.

    Raises:
        BadArgument: the name is not a word, or the type is invalid.
    """

    name: str
    type: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, "a hole")
        if self.type:
            hole_type(self.type)

    def __str__(self) -> str:
        return f"{self.name}:{self.type}" if self.type else self.name


@dataclass(frozen=True, slots=True)
class AnyNumber:
    """Match any literal, the same in each occurrence; its value is ``match.value(name)``.

    On the right side, an application to literals alone is evaluated:
    ``App(Add, AnyNumber("c"), AnyNumber("d"))`` is a literal.

    Raises:
        BadArgument: the name is not a word, or the type is invalid.
    """

    name: str
    type: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, "a number")
        if self.type:
            hole_type(self.type)

    def __str__(self) -> str:
        return f"${self.name}:{self.type}" if self.type else f"${self.name}"


@dataclass(frozen=True, slots=True)
class Number:
    """Match a literal of this value, in every dtype that represents it; 0.0 is not -0.0.

    Raises BadArgument for another type, and for nan, which equals no value.
    """

    value: Scalar

    def __post_init__(self) -> None:
        value: object = self.value
        if not isinstance(value, bool | int | float | complex):
            raise BadArgument(
                "the value of a `Number` must be a Python number",
                expected="bool, int, float or complex",
                found=f"{value!r:.60}",
                remedy="`.item()` returns the number of an array without axes",
            )
        if isnan(complex(value).real) or isnan(complex(value).imag):
            raise BadArgument("nan matches no literal, since it equals no value", "another number")

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Rest:
    """Match all operands from here on, as the last argument of an application.

    Raises BadArgument unless the name is a word.
    """

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "the rest of the operands")

    def __str__(self) -> str:
        return f"*{self.name}"


@dataclass(frozen=True, slots=True)
class IndexHole:
    """Match the index of a load, store or accumulation, as the last argument; the same in each.

    It is the ``indexer`` of the primitive and the operands of the index.

    Attributes:
        name: its name.
        distinct: whether all elements that it selects must exist and be distinct, so that a load
            returns what was stored; False: also positions that are dropped outside of the bounds,
            and arrays of positions, which may repeat.

    Raises:
        BadArgument: the name is not a word.
    """

    name: str
    distinct: bool = True

    def __post_init__(self) -> None:
        check_name(self.name, "an index")

    def __str__(self) -> str:
        return f"[{self.name}]" if self.distinct else f"[~{self.name}]"


@dataclass(frozen=True, slots=True)
class Param:
    """Match any value of a parameter, the same in each occurrence: ``params={"axes": Param("a")}``.

    On the right side, it is the value that was matched. Raises BadArgument unless the name is a
    word.
    """

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "a parameter")

    def __str__(self) -> str:
        return f"?{self.name}"
