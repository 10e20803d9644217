"""Which effects commute: the one table from which passes decide what may move or go.

On one reference, reads commute with reads and accumulations with accumulations; every other
pair keeps program order. Different references commute, since there are no aliases. Host
effects on one channel keep their order, on different channels they commute.
"""

from __future__ import annotations

from typing import TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Io, Read, Write

N = TypeVar("N", bound=int)

COMMUTING_KINDS: frozenset[tuple[type, type]] = frozenset({(Read, Read), (Accum, Accum)})
"""Pairs of kinds that commute on the same reference."""

CHANGING_KINDS: tuple[type, ...] = (Write, Accum, Free, Io)
"""Kinds that somebody else can observe: an equation with one is never dead by itself."""


def commutes(first: Effect[N], second: Effect[N]) -> bool:
    """Whether swapping two adjacent effects leaves every observation as it was."""
    if isinstance(first, Io) or isinstance(second, Io):
        both_host = isinstance(first, Io) and isinstance(second, Io)
        return not (both_host and first == second)
    if isinstance(first, Alloc) or isinstance(second, Alloc):
        return True
    return first.ref != second.ref or (type(first), type(second)) in COMMUTING_KINDS


def changes_state(effect: Effect[N]) -> bool:
    """Whether the effect can be observed by somebody other than its own equation."""
    return isinstance(effect, CHANGING_KINDS)
