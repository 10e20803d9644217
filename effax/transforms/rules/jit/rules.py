"""The rules of ``jit``, put together."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Jit
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.jit.discharge import jit_discharge
from effax.transforms.rules.jit.jvp import jit_jvp
from effax.transforms.rules.jit.partial_eval import jit_split
from effax.transforms.rules.jit.transpose import jit_transpose
from effax.transforms.rules.jit.vmap import jit_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    Jit,
    Rules(
        jvp=jit_jvp,
        transpose=jit_transpose,
        batch=jit_batch,
        split=jit_split,
        discharge=jit_discharge,
    ),
)
