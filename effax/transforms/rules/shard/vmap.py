"""Batching of ``shard_map``: the batch axis is not divided."""

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
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import vmap


def shard_map_batch(
    b: BatchBuilder, prim: ShardMap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Each device has all lanes of its part: the batch axis is not divided."""
    masked = b.mask is not None
    with at_arguments(range(len(ins))):
        inner = vmap.cached(
            prim.jaxpr, tuple(batched), size, b.rules, b.unbatched_refs, masked, None, b.axis
        )
    mask: tuple[Spec, ...] = ((),) if masked else ()
    made = replace(
        prim,
        jaxpr=inner.jaxpr,
        in_specs=(*mask, *_behind(prim.in_specs, batched)),
        out_specs=_behind(prim.out_specs, inner.out_batched),
    )
    return BatchOut(b.emit(made, [*b.mask_operands(), *ins]), inner.out_batched)


def _behind(specs: Sequence[Spec], batched: Sequence[bool]) -> tuple[Spec, ...]:
    """The specs, behind a batch axis where there is one."""
    return tuple([((), *s) if has and s else s for s, has in zip(specs, batched, strict=True)])
