"""Rules of ``gather``, whose transpose adds at the indexed positions."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.indexing import Indexer
from effax.ir.prims import (
    AddUpdate,
)
from effax.ir.prims import index as p
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import (
    BatchOut,
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.linear_operands import fixed, only
from effax.transforms.rules.index.batched_indexer import batched_indexer


def accumulated(
    b: RuleBuilder, x: Atom | Linear, indexer: Indexer, ct: Atom, operands: Sequence[Atom]
) -> Atom | None:
    """Add the cotangent of an indexed read in place, or return it as an array."""
    if not all(ct.type.shape):
        return None
    if isinstance(x, Linear) and x.ref is not None:
        b.emit(AddUpdate(indexer), [x.ref, ct, *operands])
        return None
    return b(p.ScatterAdd(indexer), zeros(b, x.type), ct, *operands)


def gather_transpose(
    b: RuleBuilder, prim: p.Gather, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, x[i]> = <scatter_add(0, i, ct), x>, in the same mode: clipped or dropped alike
    operands = fixed(prim, ins, 1)
    dx = accumulated(b, ins[0], prim.indexer, only(cts), operands)
    return [dx, *(None for _ in operands)]


def gather_batch(
    b: RuleBuilder, prim: p.Gather, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    x, *operands = ins
    shape = x.type.shape[batched[0] :]
    axis = size if batched[0] else None
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[1:], axis)
    part = b(p.Gather(wider.indexer), x, *wider.operands)
    return BatchOut([wider.batch_first(b, part)], [True])
