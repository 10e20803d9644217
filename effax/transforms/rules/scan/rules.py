"""The rule set of ``scan``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Scan
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.scan.discharge import scan_discharge
from effax.transforms.rules.scan.jvp import scan_jvp
from effax.transforms.rules.scan.partial_eval import scan_split
from effax.transforms.rules.scan.transpose import scan_transpose
from effax.transforms.rules.scan.unroll import scan_unroll
from effax.transforms.rules.scan.vmap import scan_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    Scan,
    Rules(
        jvp=scan_jvp,
        transpose=scan_transpose,
        batch=scan_batch,
        split=scan_split,
        discharge=scan_discharge,
        unroll=scan_unroll,
        sparse=True,
    ),
)
