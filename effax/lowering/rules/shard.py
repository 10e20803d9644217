"""Lowering of ``shard_map`` on one device: its shards are batch elements of one program."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import ShardMap
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType
from effax.lowering.writer import NO_RULES, Expansion, LoweringRules
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.rules.shard.expand import expanded


def batched(prim: ShardMap, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of all shards."""
    return expanded(prim, types, DEFAULT_RULES)


RULES: Final[LoweringRules] = NO_RULES.extend(ShardMap, Expansion(batched))
