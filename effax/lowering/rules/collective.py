"""Collectives have no lowering: ``vmap`` and ``shard_map`` replace them before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from effax.ir.axes import open_program
from effax.ir.prims import collective as c
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def unbound(w: Writer, prim: c.Collective, ins: Sequence[Val]) -> Sequence[Val]:
    raise open_program((prim.axis,), "compiled")


_ALL: Final[tuple[type[c.Collective], ...]] = (
    c.Psum,
    c.PsumInvariant,
    c.AllGatherInvariant,
    c.Pmax,
    c.Pmin,
    c.AllGather,
    c.ReduceScatter,
    c.AllToAll,
    c.PPermute,
    c.Pvary,
    c.AxisIndex,
)

RULES: Final[LoweringRules] = reduce(
    lambda rules, prim: rules.extend(prim, unbound), _ALL, NO_RULES
)
