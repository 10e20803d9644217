"""The default rule set: the rules of all families, each imported when it is first used."""

from __future__ import annotations

from typing import Final

from effax.ir.families import FamilyTable
from effax.ir.primitive import Primitive
from effax.transforms.framework.rules import Rules, RuleSet

DEFAULT_RULES: Final = RuleSet(FamilyTable[Rules[Primitive]]("effax.transforms.rules", ("RULES",)))
