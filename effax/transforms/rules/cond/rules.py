"""The rule set of ``cond``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Cond
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.cond.discharge import cond_discharge
from effax.transforms.rules.cond.jvp import cond_jvp
from effax.transforms.rules.cond.partial_eval import cond_split
from effax.transforms.rules.cond.transpose import cond_transpose
from effax.transforms.rules.cond.vmap import cond_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    Cond,
    Rules(
        jvp=cond_jvp,
        transpose=cond_transpose,
        batch=cond_batch,
        split=cond_split,
        discharge=cond_discharge,
    ),
)
