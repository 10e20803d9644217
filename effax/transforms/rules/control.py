"""The rules of control flow, put together."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Cond, Jit, Scan, While
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.cond.discharge import cond_discharge
from effax.transforms.rules.cond.jvp import cond_jvp
from effax.transforms.rules.cond.partial_eval import cond_split
from effax.transforms.rules.cond.transpose import cond_transpose
from effax.transforms.rules.cond.vmap import cond_batch
from effax.transforms.rules.jit.discharge import jit_discharge
from effax.transforms.rules.jit.jvp import jit_jvp
from effax.transforms.rules.jit.partial_eval import jit_split
from effax.transforms.rules.jit.transpose import jit_transpose
from effax.transforms.rules.jit.vmap import jit_batch
from effax.transforms.rules.scan.discharge import scan_discharge
from effax.transforms.rules.scan.jvp import scan_jvp
from effax.transforms.rules.scan.partial_eval import scan_split
from effax.transforms.rules.scan.transpose import scan_transpose
from effax.transforms.rules.scan.vmap import scan_batch
from effax.transforms.rules.while_.discharge import loop_discharge
from effax.transforms.rules.while_.jvp import loop_jvp
from effax.transforms.rules.while_.partial_eval import loop_split
from effax.transforms.rules.while_.transpose import loop_transpose
from effax.transforms.rules.while_.vmap import loop_batch

CONTROL: Final[RuleSet] = (
    NO_RULES.extend(Jit, Rules(jit_jvp, jit_transpose, jit_batch, jit_split, jit_discharge))
    .extend(
        Scan, Rules(scan_jvp, scan_transpose, scan_batch, scan_split, scan_discharge, sparse=True)
    )
    .extend(Cond, Rules(cond_jvp, cond_transpose, cond_batch, cond_split, cond_discharge))
    .extend(While, Rules(loop_jvp, loop_transpose, loop_batch, loop_split, loop_discharge))
)
