"""Which effects commute: the one table from which passes decide what may move or go.

On one reference, reads commute with reads and accumulations with accumulations; every other
pair keeps program order. Different references commute, since there are no aliases. Each kind of
side effect declares its own part (``SideEffect.commutes_with``), so this table decides user-defined
kinds as it decides those of the library.
"""

from __future__ import annotations

from typing import TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Read, SideEffect, Write

N = TypeVar("N", bound=int)

COMMUTING_KINDS: frozenset[tuple[type, type]] = frozenset({(Read, Read), (Accum, Accum)})
"""Pairs of kinds that commute on the same reference."""

CHANGING_KINDS: tuple[type, ...] = (Write, Accum, Free)
"""Kinds that somebody else can observe: an equation with one is never dead by itself.

An effect on the world outside says so itself (``SideEffect.observed``).
"""


def commutes(first: Effect[N], second: Effect[N]) -> bool:
    """Whether swapping two adjacent effects leaves every observation as it was."""
    if isinstance(first, SideEffect) and isinstance(second, SideEffect):
        return first.commutes_with(second) and second.commutes_with(first)
    if isinstance(first, SideEffect | Alloc) or isinstance(second, SideEffect | Alloc):
        return True
    return first.ref != second.ref or (type(first), type(second)) in COMMUTING_KINDS


def changes_state(effect: Effect[N]) -> bool:
    """Whether the effect can be observed by somebody other than its own equation."""
    return effect.observed if isinstance(effect, SideEffect) else isinstance(effect, CHANGING_KINDS)
