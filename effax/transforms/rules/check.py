"""Rules of checks: they receive primal values, and only those of active batch elements fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.build import lit
from effax.ir.prims import Check, SelectN
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import NO_RULES, BatchBuilder, BatchOut, RuleSet
from effax.transforms.rules.common.arrays import mask_like, to_front
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.rules.host import primal_jvp, side_effect_transpose


def check_batch(
    b: BatchBuilder, prim: Check, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Check all batch elements at once; the first one that fails is reported."""
    code, *payload = [to_front(b, x, has, size) for x, has in zip(ins, batched, strict=True)]
    if b.mask is not None:
        active = mask_like(b, b.mask, code)
        code = b(SelectN(), active, lit(0, code.type), code)
    return BatchOut(b.emit(prim, [code, *payload]), [])


RULES: Final[RuleSet] = NO_RULES.extend(
    Check, array_rules(jvp=primal_jvp, transpose=side_effect_transpose, batch=check_batch)
)
