"""The rule set of ``shard_map``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from effax.ir.memo import memoize
from effax.ir.prims import ShardingConstraint, ShardMap
from effax.transforms.framework.rules import NO_RULES, BatchRule, Rules, RuleSet
from effax.transforms.rules.shard.constraint import CONSTRAINT_RULES
from effax.transforms.rules.shard.discharge import shard_map_discharge
from effax.transforms.rules.shard.jvp import shard_map_jvp
from effax.transforms.rules.shard.partial_eval import shard_map_split
from effax.transforms.rules.shard.transpose import shard_map_transpose
from effax.transforms.rules.shard.vmap import constraint_batch, shard_map_batch

_SHARD_MAP: Final = Rules[ShardMap](
    jvp=shard_map_jvp,
    transpose=shard_map_transpose,
    batch=shard_map_batch,
    split=shard_map_split,
    discharge=shard_map_discharge,
)

RULES: Final[RuleSet] = NO_RULES.extend(ShardMap, _SHARD_MAP).extend(
    ShardingConstraint, CONSTRAINT_RULES
)


@memoize(maxsize=64)
def dividing_batches(rules: RuleSet, over: tuple[str, ...]) -> RuleSet:
    """Return the rules with which ``vmap`` divides the batch over these axes of meshes."""
    constraint: BatchRule[ShardingConstraint] = partial(constraint_batch, over=over)
    batch: BatchRule[ShardMap] = partial(shard_map_batch, over=over)
    return rules.extend(ShardMap, replace(_SHARD_MAP, batch=batch)).extend(
        ShardingConstraint, replace(CONSTRAINT_RULES, batch=constraint)
    )
