"""The rule set of ``jit`` and ``composite``, whose derivatives are those of a plain call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import Composite, Jit
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    BatchOut,
    JvpOut,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.rules.jit.discharge import call_discharge
from effax.transforms.rules.jit.jvp import call_jvp
from effax.transforms.rules.jit.partial_eval import jit_split
from effax.transforms.rules.jit.transpose import call_transpose
from effax.transforms.rules.jit.vmap import call_batch


def _jvp(
    b: RuleBuilder, prim: Composite, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    return call_jvp(b, prim.plain(), primals, tangents)


def _transpose(
    b: RuleBuilder, prim: Composite, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return call_transpose(b, prim.plain(), ins, cts)


def _batch(
    b: BatchBuilder, prim: Composite, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return call_batch(b, prim.plain(), ins, batched, size)


RULES: Final[RuleSet] = NO_RULES.extend(
    Jit,
    Rules(
        jvp=call_jvp,
        transpose=call_transpose,
        batch=call_batch,
        split=jit_split,
        discharge=call_discharge,
    ),
).extend(Composite, array_rules(_jvp, _transpose, _batch))
