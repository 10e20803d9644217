"""Rules of ``dynamic_slice`` and ``dynamic_update_slice``, gathers for batched starts."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import lit
from effax.ir.dtypes import INT32
from effax.ir.indexing import Indexer, Span
from effax.ir.prims import (
    DynamicSlice,
    DynamicUpdateSlice,
)
from effax.ir.prims import index as p
from effax.ir.syntax import Atom
from effax.ir.types import Shape, array_type
from effax.transforms.framework.rules import (
    BatchOut,
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.linear_operands import fixed, only
from effax.transforms.rules.index.gather import accumulated, gather_batch
from effax.transforms.rules.index.scatter import scatter_batch


def window(sizes: Shape) -> Indexer:
    """Return the indexer of a window of these sizes at dynamic starts."""
    return Indexer(tuple(Span(None, n) for n in sizes))


def dynamic_slice_transpose(
    b: RuleBuilder,
    prim: DynamicSlice,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # y = x[s : s + n]: x'[s : s + n] += y', with starts clamped as in the read
    starts = fixed(prim, ins, 1)
    dx = accumulated(b, ins[0], window(prim.slice_sizes), only(cts), starts)
    return [dx, *(None for _ in starts)]


def dynamic_slice_batch(
    b: RuleBuilder,
    prim: DynamicSlice,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    if True in batched[1:]:
        return gather_batch(b, p.Gather(window(prim.slice_sizes)), ins, batched, size)
    x, *starts = ins
    wider = DynamicSlice((size, *prim.slice_sizes))
    return BatchOut([b(wider, x, _first(starts), *starts)], [True])


def _first(starts: Sequence[Atom]) -> Atom:
    """Return the start 0 along the batch axis."""
    return lit(0, starts[0].type if starts else array_type((), INT32))


def dynamic_update_transpose(
    b: RuleBuilder,
    prim: DynamicUpdateSlice,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # y = x with y[s : s + n] = u: x' = y' with zeros at [s : s + n], u' = y'[s : s + n]
    ct = only(cts)
    x, update = ins[:2]
    starts = fixed(prim, ins, 2)
    # The read comes first, so that the write stays in place.
    sizes = update.type.shape
    du = b(DynamicSlice(sizes), ct, *starts) if isinstance(update, Linear) else None
    dx = b(prim, ct, zeros(b, update.type), *starts) if isinstance(x, Linear) else None
    return [dx, du, *(None for _ in starts)]


def dynamic_update_batch(
    b: RuleBuilder,
    prim: DynamicUpdateSlice,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    if True in batched[2:]:
        sizes = ins[1].type.shape[batched[1] :]
        return scatter_batch(b, p.Scatter(window(sizes)), ins, batched, size)
    x = to_front(b, ins[0], batched[0], size)
    update = to_front(b, ins[1], batched[1], size)
    starts = ins[2:]
    return BatchOut([b(prim, x, update, _first(starts), *starts)], [True])
