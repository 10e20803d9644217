"""Batching of ``jit``: a call of the batched function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Jit
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import vmap


def jit_batch(
    b: BatchBuilder, prim: Jit, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    masked = b.mask is not None
    with at_arguments(range(len(ins))):
        inner = vmap.cached(
            prim.jaxpr, tuple(batched), size, b.rules, b.unbatched_refs, masked, None, b.axis
        )
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*b.mask_operands(), *ins])
    return BatchOut(outs, inner.out_batched)
