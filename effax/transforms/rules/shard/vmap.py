"""Batching of ``shard_map``: each device has all batch elements of its part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.partition import Spec
from effax.ir.prims import ShardMap
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    BatchBuilder,
    BatchOut,
)
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr


def shard_map_batch(
    b: BatchBuilder, prim: ShardMap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    inner = batched_subjaxpr(b, prim.jaxpr, batched, size)
    mask: list[Spec] = [() for _ in b.mask_operands()]
    made = replace(
        prim,
        jaxpr=inner.jaxpr,
        in_specs=(*mask, *_behind(prim.in_specs, batched)),
        out_specs=_behind(prim.out_specs, inner.out_batched),
    )
    return BatchOut(b.emit(made, [*b.mask_operands(), *ins]), inner.out_batched)


def _behind(specs: Sequence[Spec], batched: Sequence[bool]) -> tuple[Spec, ...]:
    """Return the specs, after a batch axis that is not divided where there is one."""
    return tuple([((), *s) if has and s else s for s, has in zip(specs, batched, strict=True)])
