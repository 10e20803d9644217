"""The rules of constraints on placements: the identity, whose cotangent is placed alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import ShardingConstraint
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import Linear, RuleBuilder, Rules
from effax.transforms.rules.common.generic_rules import array_rules, first_linear_jvp
from effax.transforms.rules.shard.vmap import constraint_batch


def _transpose(
    b: RuleBuilder,
    prim: ShardingConstraint,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    (ct,) = cts
    return [None if ct is None else b(prim, ct)]


CONSTRAINT_RULES: Final[Rules[ShardingConstraint]] = array_rules(
    jvp=first_linear_jvp, transpose=_transpose, batch=constraint_batch
)
