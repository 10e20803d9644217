"""The default lowering rules: the union of all families."""

from __future__ import annotations

from functools import reduce
from typing import Final

from effax.ir.families import declared
from effax.lowering.ordering import ORDERING
from effax.lowering.rules import contract, sort
from effax.lowering.rules.linalg import rules as linalg
from effax.lowering.tokens import TOKENS
from effax.lowering.writer import LoweringRules

FAMILY_RULES: Final = declared("effax.lowering.rules", "RULES", LoweringRules)
"""The rules of each family."""

DEFAULT: Final[LoweringRules] = reduce(
    LoweringRules.union, FAMILY_RULES.values(), ORDERING.union(TOKENS)
)
"""Rules for modules that run on every platform."""

HOST_LIBRARIES: Final[LoweringRules] = reduce(
    LoweringRules.union, (linalg.HOST_RULES, sort.HOST_RULES, contract.HOST_RULES), DEFAULT
)
"""Rules for modules that run in this process, on CPU: they call libraries."""
