"""The rule set of ``jit``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Jit
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.jit.discharge import call_discharge
from effax.transforms.rules.jit.jvp import call_jvp
from effax.transforms.rules.jit.partial_eval import jit_split
from effax.transforms.rules.jit.transpose import call_transpose
from effax.transforms.rules.jit.vmap import call_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    Jit,
    Rules(
        jvp=call_jvp,
        transpose=call_transpose,
        batch=call_batch,
        split=jit_split,
        discharge=call_discharge,
    ),
)
