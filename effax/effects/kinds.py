"""The kinds of effect that a program may have, generic in what names the reference.

An equation names references by argument position (``ArgIndex``), a program's analysis by
variable (``VarId``). Both are integers when the program runs and never mix when it is type
checked: ``Read[ArgIndex]`` is not ``Read[VarId]``.

Side effects (``SideEffect``) are an open family: each kind declares what it commutes with, and no
list names them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar, Final, Generic, NewType, TypeVar

ArgIndex = NewType("ArgIndex", int)
"""A position among an equation's arguments, or among a program's binders."""

VarId = NewType("VarId", int)
"""The number of a variable inside its program."""

N = TypeVar("N", bound=int)


@dataclass(frozen=True, slots=True)
class Read(Generic[N]):
    """The contents of ``ref`` are observed."""

    ref: N
    word: ClassVar[str] = "read"
    rank: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class Write(Generic[N]):
    """Contents of ``ref`` are replaced."""

    ref: N
    word: ClassVar[str] = "write"
    rank: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Accum(Generic[N]):
    """Something is added to the contents of ``ref``, which are not observed."""

    ref: N
    word: ClassVar[str] = "accum"
    rank: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class Alloc(Generic[N]):
    """A reference is made. ``ref`` counts *results*, unlike every other kind."""

    ref: N
    word: ClassVar[str] = "alloc"
    rank: ClassVar[int] = 3


@dataclass(frozen=True, slots=True)
class Free(Generic[N]):
    """``ref`` is consumed: nothing may use it afterwards."""

    ref: N
    word: ClassVar[str] = "free"
    rank: ClassVar[int] = 4


_UNPRINTED: Final = re.compile(r"[\s,{}]+")


class SideEffect:
    """The world outside of the program is touched: the base of all kinds of such effects.

    A kind is a subclass, a frozen dataclass with ``slots=True``, whose fields say what is touched.
    It brings its part of the commutation table::

        @dataclass(frozen=True, slots=True)
        class Log(SideEffect):
            file: str
            word: ClassVar[str] = "log"

            def commutes_with(self, other: SideEffect) -> bool:
                return not isinstance(other, Log) or other.file != self.file

    Attributes:
        word: how the kind prints, in lower case letters.
        observed: whether somebody else can tell that it happened. If not (a clock is read), an
            equation whose results nobody uses may go.
    """

    __slots__ = ()

    word: ClassVar[str]
    rank: ClassVar[int] = 5
    observed: ClassVar[bool] = True

    def commutes_with(self, other: SideEffect) -> bool:
        """Whether this effect and ``other`` may change places; it takes the consent of both.

        By default kinds commute with each other, and no kind with itself.
        """
        return type(other) is not type(self)

    @property
    def detail(self) -> str:
        """What prints after the word: by default the fields."""
        return "/".join([_UNPRINTED.sub("_", str(value)) for value in _values(self)])


def _values(kind: object) -> list[object]:
    return [getattr(kind, f.name) for f in fields(kind)] if is_dataclass(kind) else []


@dataclass(frozen=True, slots=True)
class Io(SideEffect):
    """Input and output through the channel of that name.

    What is ordered on one channel keeps its order. What is not may change places with anything,
    but happens, and as often as the program says.
    """

    channel: str
    ordered: bool = True
    word: ClassVar[str] = "io"

    def commutes_with(self, other: SideEffect) -> bool:
        """All but two ordered ones on one channel do."""
        same = isinstance(other, Io) and other.channel == self.channel
        return not (same and isinstance(other, Io) and self.ordered and other.ordered)

    @property
    def detail(self) -> str:
        """The channel; ``?`` after it where order does not matter."""
        return self.channel if self.ordered else f"{self.channel}?"


Effect = Read[N] | Write[N] | Accum[N] | Alloc[N] | Free[N] | SideEffect
