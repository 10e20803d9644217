"""The commutation table of effects, from which passes decide whether equations move or are removed.

On one reference, reads commute with reads and accumulations with accumulations; every other
pair keeps program order. Effects on different references commute, since two variables never alias
one reference. Each kind of side effect, built in or user-defined, declares its own part
(``SideEffect.commutes_with``).
"""

from __future__ import annotations

from typing import TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Read, SideEffect, Write

N = TypeVar("N", bound=int)

COMMUTING_KINDS: frozenset[tuple[type, type]] = frozenset({(Read, Read), (Accum, Accum)})
"""Pairs of kinds that commute on the same reference."""

CHANGING_KINDS: tuple[type, ...] = (Write, Accum, Free)
"""Kinds that a later equation can observe: an equation with one is not dead when its results are.

Each side effect declares this itself (``SideEffect.observed``).
"""


def commutes(first: Effect[N], second: Effect[N]) -> bool:
    """Return whether swapping two adjacent effects is unobservable."""
    if isinstance(first, SideEffect) and isinstance(second, SideEffect):
        return first.commutes_with(second) and second.commutes_with(first)
    # An allocation names a result, so its number must not be compared with an argument's. No effect
    # on a fresh reference precedes it: the uses depend on its result.
    if isinstance(first, SideEffect | Alloc) or isinstance(second, SideEffect | Alloc):
        return True
    return first.ref != second.ref or (type(first), type(second)) in COMMUTING_KINDS


def changes_state(effect: Effect[N]) -> bool:
    """Return whether an equation other than its own can observe the effect."""
    return effect.observed if isinstance(effect, SideEffect) else isinstance(effect, CHANGING_KINDS)
