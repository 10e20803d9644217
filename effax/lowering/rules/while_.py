"""Lowering of ``while``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def while_(w: Writer, prim: p.While, ins: Sequence[Val]) -> Sequence[Val]:
    consts, carry = ins[: prim.n_consts], ins[prim.n_consts :]
    if not any(x.type.size for x in carry):
        # XLA aborts the process for a loop without data. Its carries cannot change, so it ends at
        # once or never.
        return carry

    def again(*carry: Val) -> Sequence[Val]:
        return w.call(prim.cond, [*consts, *carry], "cond")

    def step(*carry: Val) -> Sequence[Val]:
        return w.call(prim.body, [*consts, *carry], "body")

    return ops.while_(w, carry, again, step)


RULES: Final[LoweringRules] = NO_RULES.extend(p.While, while_)
