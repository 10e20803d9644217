"""The rule set of ``shard_map``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import ShardingConstraint, ShardMap
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.shard.constraint import CONSTRAINT_RULES
from effax.transforms.rules.shard.discharge import shard_map_discharge
from effax.transforms.rules.shard.jvp import shard_map_jvp
from effax.transforms.rules.shard.partial_eval import shard_map_split
from effax.transforms.rules.shard.transpose import shard_map_transpose
from effax.transforms.rules.shard.vmap import shard_map_batch

RULES: Final[RuleSet] = NO_RULES.extend(
    ShardMap,
    Rules(
        jvp=shard_map_jvp,
        transpose=shard_map_transpose,
        batch=shard_map_batch,
        split=shard_map_split,
        discharge=shard_map_discharge,
    ),
).extend(ShardingConstraint, CONSTRAINT_RULES)
