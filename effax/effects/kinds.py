"""The kinds of effect that a program may have, generic in what names the reference.

An equation names references by argument position (``ArgIndex``), a program's analysis by
variable (``VarId``). Both are integers when the program runs and never mix when it is type
checked: ``Read[ArgIndex]`` is not ``Read[VarId]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, NewType, TypeVar

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


@dataclass(frozen=True, slots=True)
class Io:
    """The outside world is touched, through the channel of that name."""

    channel: str
    word: ClassVar[str] = "io"
    rank: ClassVar[int] = 5


Effect = Read[N] | Write[N] | Accum[N] | Alloc[N] | Free[N] | Io
