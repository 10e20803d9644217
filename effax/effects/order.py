"""Which effects commute: the one table from which passes decide what may move or go.

On one reference, reads commute with reads and accumulations with accumulations; every other
pair keeps program order. Different references commute, since there are no aliases. Of effects on
the world outside, each kind brings its own rules (``Host.commutes_with``), so that kinds of users
are decided by this table as those of the library are.
"""

from __future__ import annotations

from typing import TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Host, Read, Write

N = TypeVar("N", bound=int)

COMMUTING_KINDS: frozenset[tuple[type, type]] = frozenset({(Read, Read), (Accum, Accum)})
"""Pairs of kinds that commute on the same reference."""

CHANGING_KINDS: tuple[type, ...] = (Write, Accum, Free)
"""Kinds that somebody else can observe: an equation with one is never dead by itself.

An effect on the world outside says so itself (``Host.observed``).
"""


def commutes(first: Effect[N], second: Effect[N]) -> bool:
    """Whether swapping two adjacent effects leaves every observation as it was."""
    if isinstance(first, Host) and isinstance(second, Host):
        return first.commutes_with(second) and second.commutes_with(first)
    if isinstance(first, Host | Alloc) or isinstance(second, Host | Alloc):
        return True
    return first.ref != second.ref or (type(first), type(second)) in COMMUTING_KINDS


def changes_state(effect: Effect[N]) -> bool:
    """Whether the effect can be observed by somebody other than its own equation."""
    return effect.observed if isinstance(effect, Host) else isinstance(effect, CHANGING_KINDS)
