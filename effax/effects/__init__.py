"""Effects of programs: kinds, rows, the commutation table, and the rules of reference use."""

from effax.effects.kinds import (
    Accum,
    Alloc,
    ArgIndex,
    Effect,
    Free,
    Io,
    Read,
    SideEffect,
    VarId,
    Write,
)
from effax.effects.order import changes_state, commutes
from effax.effects.row import Row
from effax.effects.rules import RefRule, Rule

NO_EFFECTS: Row[ArgIndex] = Row()
"""The row of a pure equation or program."""

__all__ = [
    "NO_EFFECTS",
    "Accum",
    "Alloc",
    "ArgIndex",
    "Effect",
    "Free",
    "Io",
    "Read",
    "RefRule",
    "Row",
    "Rule",
    "SideEffect",
    "VarId",
    "Write",
    "changes_state",
    "commutes",
]
