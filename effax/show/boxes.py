"""The boxes of a picture, and the program that they form."""

from __future__ import annotations

from dataclasses import dataclass

from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Var
from effax.show.rails import Key, Rail


@dataclass(frozen=True, slots=True)
class Tap:
    """The accesses of an equation to one reference: words such as ``read``."""

    rail: Key
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A subjaxpr, drawn inside its equation."""

    caption: str
    program: Program


@dataclass(frozen=True, slots=True)
class Box:
    """An input, an equation, or a result.

    Attributes:
        kind: ``in``, ``eqn`` or ``out``; ``run`` for several equations in a row.
        text: the text in the box.
        detail: a second, smaller line; may be empty.
        tone: ``plain``, ``shape`` (rearranges data only), ``product``, ``call``.
        ins: the ids of its array operands, in order.
        outs: its array results.
        unused: the ids of ``outs`` that are not used.
        taps: its accesses to references.
        frames: the open subjaxprs.
        full: the equation as text.
        source: its source location.
        fresh: its mark in a comparison: ``""``, ``gone`` or ``new``.
        effects: its effects as text.
        named: its operands that have names, with these, as text.
        heat: its shade by cost; 0 for none.
    """

    kind: str
    text: str
    detail: str = ""
    tone: str = "plain"
    ins: tuple[int, ...] = ()
    outs: tuple[Var, ...] = ()
    unused: frozenset[int] = frozenset()
    taps: tuple[Tap, ...] = ()
    frames: tuple[Frame, ...] = ()
    full: str = ""
    source: Source | SavedSource | None = None
    fresh: str = ""
    effects: str = ""
    named: str = ""
    heat: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """The model of a jaxpr: boxes in program order, rails from left to right.

    ``listed`` programs have one box a row.
    """

    boxes: tuple[Box, ...]
    rails: tuple[Rail, ...]
    listed: bool = False


def counted(n: int, what: str) -> str:
    """Return ``1 equation``, ``2 equations``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
