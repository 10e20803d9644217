"""The rules of reference use that the checker enforces, as data: aliasing, escape, linearity.

References never alias: within a program, one reference has one variable. Effects on different
variables therefore commute, a write is visible through one name only, and a buffer can be donated.
"""

from __future__ import annotations

from enum import Enum

from effax.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefRule:
    """A restriction on references: the code in errors, the forbidden use, and the remedy."""

    code: str
    forbids: str
    remedy: str


class Rule(Enum):
    """Every restriction on references, in the order in which the checker reports them."""

    ALIAS = RefRule(
        "alias",
        "one reference passed more than once, or passed and closed over",
        "pass it once, or close over it only",
    )
    ESCAPE = RefRule(
        "escape",
        "a reference among the results of a program",
        "return its contents: `ref[...]`, or `freeze(ref)` where the ref was made",
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
        """The short name in errors."""
        return self.value.code

    @property
    def forbids(self) -> str:
        """The forbidden use, in words."""
        return self.value.forbids

    @property
    def remedy(self) -> str:
        """The remedy in messages."""
        return self.value.remedy
