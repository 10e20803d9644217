"""Batching of ``remat``, of names and of barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    BatchBuilder,
    BatchOut,
)
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import vmap


def remat_batch(
    b: BatchBuilder, prim: Remat, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    masked = b.mask is not None
    with at_arguments(range(len(ins))):
        inner = vmap.cached(
            prim.jaxpr, tuple(batched), size, b.rules, b.unbatched_refs, masked, None, b.axis
        )
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*b.mask_operands(), *ins])
    return BatchOut(outs, inner.out_batched)


def same_batch(
    b: BatchBuilder,
    prim: Name | OptimizationBarrier,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), batched)
