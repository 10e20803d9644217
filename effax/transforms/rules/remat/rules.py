"""The rule set of ``remat``, ``name`` and ``optimization_barrier``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.primitive import Primitive
from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, BatchBuilder, BatchOut, Rules, RuleSet
from effax.transforms.rules.common.generic_rules import (
    array_rules,
    identity_jvp,
    identity_transpose,
)
from effax.transforms.rules.jit.jvp import call_jvp
from effax.transforms.rules.jit.vmap import call_batch
from effax.transforms.rules.remat.discharge import remat_discharge
from effax.transforms.rules.remat.jvp import barrier_jvp
from effax.transforms.rules.remat.partial_eval import remat_split
from effax.transforms.rules.remat.transpose import barrier_transpose, remat_transpose


def _identity_batch(
    b: BatchBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), batched)


RULES: Final[RuleSet] = (
    NO_RULES.extend(
        Remat,
        Rules(
            jvp=call_jvp,
            transpose=remat_transpose,
            batch=call_batch,
            split=remat_split,
            discharge=remat_discharge,
        ),
    )
    .extend(Name, array_rules(identity_jvp, identity_transpose, _identity_batch))
    .extend(OptimizationBarrier, array_rules(barrier_jvp, barrier_transpose, _identity_batch))
)
