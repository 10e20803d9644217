"""Lowering of ``shard_map``: on one device its devices are lanes of one program."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import ShardMap
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType
from effax.lowering.writer import NO_RULES, Expansion, LoweringRules
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.rules.shard.expand import expanded


def as_lanes(prim: ShardMap, types: tuple[ArrayType, ...]) -> Jaxpr:
    """The program of all devices."""
    return expanded(prim, types, DEFAULT_RULES)


RULES: Final[LoweringRules] = NO_RULES.extend(ShardMap, Expansion(as_lanes))
