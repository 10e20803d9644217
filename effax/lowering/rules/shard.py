"""Lowering of ``shard_map`` on one device: its shards are batch elements of one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.prims import ShardingConstraint, ShardMap
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType
from effax.lowering.writer import NO_RULES, Expansion, LoweringRules, Val, Writer
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.rules.shard.expand import expanded


def batched(prim: ShardMap, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of all shards."""
    return expanded(prim, types, DEFAULT_RULES)


def unplaced(w: Writer, prim: ShardingConstraint, ins: Sequence[Val]) -> Sequence[Val]:
    return ins


RULES: Final[LoweringRules] = NO_RULES.extend(ShardMap, Expansion(batched)).extend(
    ShardingConstraint, unplaced
)
