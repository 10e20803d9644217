"""The rule set of ``jit`` and ``composite``, whose derivatives are those of a plain call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import Composite, Jit
from effax.ir.syntax import Atom
from effax.ir.types import Type
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    BatchOut,
    DischargeOut,
    JvpOut,
    Linear,
    PartialEvalOut,
    Policy,
    RuleBuilder,
    Rules,
    RuleSet,
)
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


def _split(
    rules: RuleSet,
    prim: Composite,
    in_types: tuple[Type, ...],
    known: tuple[bool, ...],
    policy: Policy | None,
) -> PartialEvalOut | None:
    return jit_split(rules, prim.plain(), in_types, known, policy)


def _discharge(
    b: RuleBuilder, prim: Composite, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    return call_discharge(b, prim.plain(), ins, is_ref)


RULES: Final[RuleSet] = NO_RULES.extend(
    Jit,
    Rules(
        jvp=call_jvp,
        transpose=call_transpose,
        batch=call_batch,
        split=jit_split,
        discharge=call_discharge,
    ),
).extend(
    Composite,
    Rules(jvp=_jvp, transpose=_transpose, batch=_batch, split=_split, discharge=_discharge),
)
