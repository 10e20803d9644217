"""The rules for references that a checker applies, as data: aliasing, escape, linear use.

Each rule has a code that errors carry, what it forbids, and the remedy that a message offers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class RefRule:
    """One restriction on references: what it forbids, why, and what to write instead."""

    code: str
    forbids: str
    remedy: str


class Rule(Enum):
    """Every restriction on references, in the order in which a checker reports them."""

    ALIAS = RefRule(
        "alias",
        "one reference passed more than once, or passed and closed over",
        "pass it once, or close over it only",
    )
    ESCAPE = RefRule(
        "escape",
        "a reference among the results of a program",
        "return what it holds: `ref[...]`, or `freeze(ref)` where the ref was made",
    )
    USE_AFTER_FREE = RefRule(
        "use-after-free",
        "use of a reference after `freeze` or `free` consumed it",
        "read what is needed before, or make a new ref",
    )
    FOREIGN_FREE = RefRule(
        "foreign-free",
        "`freeze` or `free` outside of the scope that made the reference",
        "read it with `ref[...]` here, and freeze it where it was made",
    )
    REF_TO_REF = RefRule(
        "ref-to-ref",
        "a reference inside of a reference",
        "use a tuple or a dict of refs",
    )
    REF_AS_ARRAY = RefRule(
        "ref-as-array",
        "a reference where an array belongs",
        "read it first: `ref[...]`",
    )
    SHARED_WRITE = RefRule(
        "shared-write",
        "a write to one reference by several devices",
        "add to it (`addupdate`), or pass it with a spec that divides it over all axes of the mesh",
    )

    @property
    def code(self) -> str:
        """The short name that errors carry."""
        return self.value.code

    @property
    def forbids(self) -> str:
        """What the rule forbids, in words."""
        return self.value.forbids

    @property
    def remedy(self) -> str:
        """What to write instead."""
        return self.value.remedy
