"""Batching of ``jit`` and ``remat``: a call of the batched jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Jit, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr


def call_batch(
    b: BatchBuilder, prim: Jit | Remat, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    inner = batched_subjaxpr(b, prim.jaxpr, batched, size)
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*b.mask_operands(), *ins])
    return BatchOut(outs, inner.out_batched)
