"""The kinds of effects, generic in the name of the reference.

The effects of an equation name references by argument position (``ArgIndex``), those of an
analysis by variable (``VarId``). Both are integers at run time, and distinct types for a type
checker: ``Read[ArgIndex]`` is not ``Read[VarId]``.

Side effects (``SideEffect``) are an open family: each kind declares with which kinds it commutes.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import ClassVar, Final, Generic, NewType, TypeVar

from effax.lazy.dataclasses import dataclass

ArgIndex = NewType("ArgIndex", int)
"""A position among an equation's arguments, or among a program's binders."""

VarId = NewType("VarId", int)
"""The number of a variable inside its program."""

N = TypeVar("N", bound=int)


@dataclass(frozen=True, slots=True)
class Read(Generic[N]):
    """A read of the contents of ``ref``."""

    ref: N
    word: ClassVar[str] = "read"
    rank: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class Write(Generic[N]):
    """A replacement of contents of ``ref``."""

    ref: N
    word: ClassVar[str] = "write"
    rank: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Accum(Generic[N]):
    """An addition to the contents of ``ref``, which does not observe them."""

    ref: N
    word: ClassVar[str] = "accum"
    rank: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class Alloc(Generic[N]):
    """The allocation of a reference; ``ref`` is a position among the *results*."""

    ref: N
    word: ClassVar[str] = "alloc"
    rank: ClassVar[int] = 3


@dataclass(frozen=True, slots=True)
class Free(Generic[N]):
    """The end of ``ref``: no later equation may use it."""

    ref: N
    word: ClassVar[str] = "free"
    rank: ClassVar[int] = 4


_UNPRINTED: Final = re.compile(r"[\s,{}]+")


class SideEffect:
    """The base of all effects outside of the program: input, output, callbacks.

    A kind is a subclass, a frozen dataclass with ``slots=True``, whose fields name the resource.
    It defines its part of the commutation table::

        @dataclass(frozen=True, slots=True)
        class Log(SideEffect):
            file: str
            word: ClassVar[str] = "log"

            def commutes_with(self, other: SideEffect) -> bool:
                return not isinstance(other, Log) or other.file != self.file

    Attributes:
        word: the printed name of the kind, in lower case letters.
        observed: whether the effect is visible outside. If not (a clock is read), an equation
            whose results are unused is dead.
    """

    __slots__ = ()

    word: ClassVar[str]
    rank: ClassVar[int] = 5
    observed: ClassVar[bool] = True

    def commutes_with(self, other: SideEffect) -> bool:
        """Return whether this effect and ``other`` may be swapped; both must agree.

        By default a kind commutes with every kind but itself.
        """
        return type(other) is not type(self)

    @property
    def detail(self) -> str:
        """The text after the word: by default the fields."""
        return "/".join([_UNPRINTED.sub("_", str(value)) for value in _values(self)])


def _values(kind: object) -> list[object]:
    return [getattr(kind, f.name) for f in fields(kind)] if is_dataclass(kind) else []


@dataclass(frozen=True, slots=True)
class Io(SideEffect):
    """Input and output on the named channel.

    Ordered effects on one channel keep their order. Unordered ones commute with every effect, but
    are neither removed nor repeated.
    """

    channel: str
    ordered: bool = True
    word: ClassVar[str] = "io"

    def commutes_with(self, other: SideEffect) -> bool:
        """Return whether not both are ordered on the same channel."""
        same = isinstance(other, Io) and other.channel == self.channel
        return not (same and isinstance(other, Io) and self.ordered and other.ordered)

    @property
    def detail(self) -> str:
        """The channel, followed by ``?`` if unordered."""
        return self.channel if self.ordered else f"{self.channel}?"


Effect = Read[N] | Write[N] | Accum[N] | Alloc[N] | Free[N] | SideEffect
