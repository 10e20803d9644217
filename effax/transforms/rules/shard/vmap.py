"""Batching of ``shard_map`` and of constraints on placements.

Each device has all batch elements of its part. Along further axes of the mesh
(``spmd_axis_name``), each has a part of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from effax.ir.errors import TransformError
from effax.ir.partition import Spec, names_in, sizes_of
from effax.ir.prims import ShardingConstraint, ShardMap
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr

Names = tuple[str, ...]


def shard_map_batch(
    b: BatchBuilder,
    prim: ShardMap,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    over: Names = (),
) -> BatchOut:
    over = over if _divides(b, prim, over) else ()
    sizes = sizes_of(prim.mesh)
    count = prod([sizes[name] for name in over])
    if size % count:
        raise TransformError(
            "vmap: the batch does not divide over the axes of spmd_axis_name",
            expected=f"a multiple of {count}, for {over}",
            found=str(size),
        )
    inner = batched_subjaxpr(b, prim.jaxpr, batched, size // count)
    mask: list[Spec] = [() for _ in b.mask_operands()]
    made = replace(
        prim,
        jaxpr=inner.jaxpr,
        in_specs=(*mask, *_behind(prim.in_specs, batched, over)),
        out_specs=_behind(prim.out_specs, inner.out_batched, over),
    )
    return BatchOut(b.emit(made, [*b.mask_operands(), *ins]), inner.out_batched)


def _behind(specs: Sequence[Spec], batched: Sequence[bool], over: Names) -> tuple[Spec, ...]:
    """Return the specs, after a batch axis that is divided over these axes where there is one."""
    return tuple(
        [(over, *s) if has and (s or over) else s for s, has in zip(specs, batched, strict=True)]
    )


def _divides(b: BatchBuilder, prim: ShardMap, over: Names) -> bool:
    """Return whether devices along these axes may take parts of the batch: they do the same.

    Raises TransformError where the specs name an axis.
    """
    if not set(over) <= set(sizes_of(prim.mesh)):
        return False
    taken = sorted({n for spec in prim.in_specs + prim.out_specs for n in names_in(spec)} & {*over})
    if taken:
        raise TransformError(
            f"vmap: the axis '{taken[0]}' of spmd_axis_name cannot appear in the specs of a "
            "shard_map inside",
            expected="an axis of the mesh over which nothing else is divided",
            found=f"'{taken[0]}'",
        )
    differ = {axis.name for axis in prim.jaxpr.free_axes} & {*over}
    return not differ and not prim.jaxpr.effects and b.mask is None


def constraint_batch(
    b: BatchBuilder,
    prim: ShardingConstraint,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    over: Names = (),
) -> BatchOut:
    """Divide the batch axis over these axes; without any, leave it to the compiler."""
    free = [d + 1 for d in prim.free] if over else [0, *[d + 1 for d in prim.free]]
    wider = replace(prim, spec=(over, *prim.spec), free=tuple(free))
    return BatchOut(b.emit(wider, ins), [True])
