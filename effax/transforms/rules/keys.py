"""Rules of random keys, which have no tangents and are moved as any elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, BatchOut, RuleBuilder, RuleSet
from effax.transforms.rules.common.generic_rules import NONLINEAR, array_rules, no_tangent


def _batch(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


RULES: Final[RuleSet] = NO_RULES.extend(
    p.RandomWrap, array_rules(jvp=no_tangent, transpose=NONLINEAR, batch=_batch)
).extend(p.RandomUnwrap, array_rules(jvp=no_tangent, transpose=NONLINEAR, batch=_batch))
