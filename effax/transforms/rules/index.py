"""Rules of indexed reads and updates. What is indexed stays sparse when it is transposed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from effax.ir.build import lit
from effax.ir.dtypes import INT32
from effax.ir.indexing import Indexer, Pick, Span, is_dynamic, layout
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    DynamicSlice,
    DynamicUpdateSlice,
    Eq,
    Iota,
    Reshape,
)
from effax.ir.prims import index as p
from effax.ir.syntax import Atom
from effax.ir.types import Shape, array_type
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    Indivisible,
    JvpOut,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common import no_refs, to_front, zeros
from effax.transforms.rules.indexed import batched_indexer
from effax.transforms.rules.linear import first_linear_jvp, fixed, only
from effax.transforms.rules.pointwise import const, where


def window(sizes: Shape) -> Indexer:
    """The indexer of a window of these sizes at dynamic starts."""
    return Indexer(tuple(Span(None, n) for n in sizes))


def _accumulated(
    b: RuleBuilder, x: Atom | Linear, indexer: Indexer, ct: Atom, operands: Sequence[Atom]
) -> Atom | None:
    """The cotangent of an indexed read: added in place, or to an array of zeros."""
    if not all(ct.type.shape):
        return None
    if isinstance(x, Linear) and x.ref is not None:
        b.emit(AddUpdate(indexer), [x.ref, ct, *operands])
        return None
    return b(p.ScatterAdd(indexer), zeros(b, x.type), ct, *operands)


def _gather_transpose(
    b: RuleBuilder, prim: p.Gather, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, x[i]> = <zeros with ct added at [i], x>; every duplicate counts, a clipped position
    # is clipped again, a dropped one is dropped
    operands = fixed(prim, ins, 1)
    dx = _accumulated(b, ins[0], prim.indexer, only(cts), operands)
    return [dx, *(None for _ in operands)]


def _gather_batch(
    b: RuleBuilder, prim: p.Gather, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    x, *operands = ins
    shape = x.type.shape[batched[0] :]
    axis = size if batched[0] else None
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[1:], axis)
    part = b(p.Gather(wider.indexer), x, *wider.operands)
    return BatchOut([wider.lane_order(b, part)], [True])


def _update_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Linear in the array and the update together; the other operands are indices.

    d scatter(x, v, i) = scatter(dx, dv, i)
    """
    y = b(prim, *primals)
    given = zip(primals[:2], tangents[:2], strict=True)
    parts = [zeros(b, x.type) if d is None else d for x, d in given]
    return JvpOut([y], [b(prim, *parts, *primals[2:])])


def _scatter_add_jvp(
    b: RuleBuilder, prim: p.ScatterAdd, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    if tangents[1] is None:
        return JvpOut([b(prim, *primals)], [tangents[0]])
    return _update_jvp(b, prim, primals, tangents)


def winners(
    b: RuleBuilder, indexer: Indexer, shape: Shape, operands: Sequence[Atom], part: Shape
) -> Atom | None:
    """Where in the indexed part an element is the last that was written to its position.

    None: no two picks can meet. Numbers are written through the same picks and read back.

    Args:
        b: where the mask is computed.
        indexer: the indexer of the write.
        shape: the shape of what is written to.
        operands: those of the indexer.
        part: the shape of the indexed part.
    """
    feed = iter(operands)
    dynamic = [
        (dim, n, next(feed)) for dim, n in zip(indexer.dims, shape, strict=True) if is_dynamic(dim)
    ]
    picks = [(n, operand) for dim, n, operand in dynamic if isinstance(dim, Pick)]
    if not any(o.type.shape for _, o in picks):
        return None
    place = layout(indexer, [o.type.shape for o in operands])
    count = prod(place.pick_shape)
    numbers = b(Reshape(place.pick_shape), b(Iota(INT32, (count,), 0)))
    table = zeros(b, array_type([n for n, _ in picks], INT32))
    positions = Indexer((Pick(None),) * len(picks), indexer.mode)
    given = [o for _, o in picks]
    last = b(p.Gather(positions), b(p.Scatter(positions), table, numbers, *given), *given)
    dims = tuple(range(place.position, place.position + len(place.pick_shape)))
    return b(BroadcastInDim(part, dims), b(Eq(), last, numbers))


def _scatter_transpose(
    b: RuleBuilder, prim: p.Scatter, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # What is overwritten gets nothing: ct with zeros at [i] for x, and ct[i] for the values
    # that remain.
    ct = only(cts)
    x, value = ins[:2]
    operands = fixed(prim, ins, 2)
    part = value.type.shape
    dx: Atom | None = None
    dv: Atom | None = None
    if isinstance(x, Linear):
        dx = b(prim, ct, zeros(b, value.type), *operands)
    if isinstance(value, Linear):
        dv = b(p.Gather(prim.indexer), ct, *operands)
        mask = winners(b, prim.indexer, x.type.shape, operands, part)
        dv = dv if mask is None else where(b, mask, dv, const(0, dv))
    return [dx, dv, *(None for _ in operands)]


def _scatter_add_transpose(
    b: RuleBuilder, prim: p.ScatterAdd, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    ct = only(cts)
    operands = fixed(prim, ins, 2)
    dx = ct if isinstance(ins[0], Linear) else None
    dv = b(p.Gather(prim.indexer), ct, *operands) if isinstance(ins[1], Linear) else None
    return [dx, dv, *(None for _ in operands)]


def scatter_batch(
    b: RuleBuilder,
    prim: p.Scatter | p.Combining,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    x = to_front(b, ins[0], batched[0], size)
    value = to_front(b, ins[1], batched[1], size)
    shape = x.type.shape[1:]
    wider = batched_indexer(b, prim.indexer, shape, ins[2:], batched[2:], size)
    moved = wider.index_order(b, value)
    return BatchOut([b(type(prim)(wider.indexer), x, moved, *wider.operands)], [True])


def _dynamic_slice_transpose(
    b: RuleBuilder,
    prim: DynamicSlice,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # Starts move inward in the read and in the addition alike.
    starts = fixed(prim, ins, 1)
    dx = _accumulated(b, ins[0], window(prim.slice_sizes), only(cts), starts)
    return [dx, *(None for _ in starts)]


def _dynamic_slice_batch(
    b: RuleBuilder,
    prim: DynamicSlice,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    if True in batched[1:]:
        return _gather_batch(b, p.Gather(window(prim.slice_sizes)), ins, batched, size)
    x, *starts = ins
    wider = DynamicSlice((size, *prim.slice_sizes))
    return BatchOut([b(wider, x, _first(starts), *starts)], [True])


def _first(starts: Sequence[Atom]) -> Atom:
    """The start of the batch axis, which is taken whole."""
    return lit(0, starts[0].type if starts else array_type((), INT32))


def _dynamic_update_transpose(
    b: RuleBuilder,
    prim: DynamicUpdateSlice,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    ct = only(cts)
    x, update = ins[:2]
    starts = fixed(prim, ins, 2)
    dx = b(prim, ct, zeros(b, update.type), *starts) if isinstance(x, Linear) else None
    sizes = update.type.shape
    du = b(DynamicSlice(sizes), ct, *starts) if isinstance(update, Linear) else None
    return [dx, du, *(None for _ in starts)]


def _dynamic_update_batch(
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


INDEX: Final[RuleSet] = (
    NO_RULES.extend(
        p.Gather,
        Rules(
            first_linear_jvp, _gather_transpose, _gather_batch, Indivisible(), no_refs, sparse=True
        ),
    )
    .extend(
        p.Scatter,
        Rules(_update_jvp, _scatter_transpose, scatter_batch, Indivisible(), no_refs),
    )
    .extend(
        p.ScatterAdd,
        Rules(_scatter_add_jvp, _scatter_add_transpose, scatter_batch, Indivisible(), no_refs),
    )
    .extend(
        DynamicSlice,
        Rules(
            first_linear_jvp,
            _dynamic_slice_transpose,
            _dynamic_slice_batch,
            Indivisible(),
            no_refs,
            sparse=True,
        ),
    )
    .extend(
        DynamicUpdateSlice,
        Rules(
            _update_jvp, _dynamic_update_transpose, _dynamic_update_batch, Indivisible(), no_refs
        ),
    )
)
