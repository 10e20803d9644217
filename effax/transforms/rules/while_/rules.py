"""The rule set of ``while``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import While
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.while_.discharge import while_discharge
from effax.transforms.rules.while_.jvp import while_jvp
from effax.transforms.rules.while_.partial_eval import while_split
from effax.transforms.rules.while_.transpose import while_transpose
from effax.transforms.rules.while_.unroll import while_unroll
from effax.transforms.rules.while_.vmap import while_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    While,
    Rules(
        jvp=while_jvp,
        transpose=while_transpose,
        batch=while_batch,
        split=while_split,
        discharge=while_discharge,
        unroll=while_unroll,
    ),
)
