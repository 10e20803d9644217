"""Rules of ``remat``, of names and of barriers. Most of ``remat``'s are those of a call."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.transforms.framework.rules import (
    NO_RULES,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.rules.remat.discharge import remat_discharge
from effax.transforms.rules.remat.jvp import barrier_jvp, name_jvp, remat_jvp
from effax.transforms.rules.remat.partial_eval import remat_split
from effax.transforms.rules.remat.transpose import (
    barrier_transpose,
    remat_transpose,
    same_transpose,
)
from effax.transforms.rules.remat.vmap import remat_batch, same_batch

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        Remat,
        Rules(
            jvp=remat_jvp,
            transpose=remat_transpose,
            batch=remat_batch,
            split=remat_split,
            discharge=remat_discharge,
        ),
    )
    .extend(
        Name,
        array_rules(jvp=name_jvp, transpose=same_transpose, batch=same_batch),
    )
    .extend(
        OptimizationBarrier,
        array_rules(jvp=barrier_jvp, transpose=barrier_transpose, batch=same_batch),
    )
)
