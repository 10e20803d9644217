"""The default lowering rules: those of all families, each imported when it is first used."""

from __future__ import annotations

from typing import Final

from effax.ir.families import FamilyTable
from effax.lowering.ordering import ORDERING
from effax.lowering.tokens import TOKENS
from effax.lowering.writer import LoweringRules, Rule


def _rules(*names: str) -> LoweringRules:
    families = FamilyTable[Rule]("effax.lowering.rules", names)
    return LoweringRules(families).union(ORDERING).union(TOKENS)


DEFAULT: Final[LoweringRules] = _rules("RULES")
"""Rules for modules that run on every platform."""

HOST_LIBRARIES: Final[LoweringRules] = _rules("RULES", "HOST_RULES")
"""Rules for modules that run in this process, on CPU: they call libraries."""
