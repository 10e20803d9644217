"""The rules of constraints on placements: the identity, whose cotangent is placed alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.prims import ShardingConstraint
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import BatchBuilder, BatchOut, Linear, RuleBuilder, Rules
from effax.transforms.rules.common.generic_rules import array_rules, first_linear_jvp


def _transpose(
    b: RuleBuilder,
    prim: ShardingConstraint,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    (ct,) = cts
    return [None if ct is None else b(prim, ct)]


def _batch(
    b: BatchBuilder,
    prim: ShardingConstraint,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    """Leave the division of the batch axis to the compiler."""
    wider = replace(prim, spec=((), *prim.spec), free=(0, *[d + 1 for d in prim.free]))
    return BatchOut(b.emit(wider, ins), [True])


CONSTRAINT_RULES: Final[Rules[ShardingConstraint]] = array_rules(
    jvp=first_linear_jvp, transpose=_transpose, batch=_batch
)
