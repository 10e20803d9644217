"""The default rule set: the union of the rules of all families."""

from __future__ import annotations

from functools import reduce
from typing import Final

from effax.ir.families import declared
from effax.transforms.framework.pass_ import register_default_rules
from effax.transforms.framework.rules import NO_RULES, RuleSet

FAMILY_RULES: Final = declared("effax.transforms.rules", "RULES", RuleSet)
"""The rules of each family."""

DEFAULT_RULES: Final[RuleSet] = reduce(RuleSet.union, FAMILY_RULES.values(), NO_RULES)
register_default_rules(DEFAULT_RULES)
