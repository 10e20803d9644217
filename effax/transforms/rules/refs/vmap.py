"""Batching of the primitives of references: a batched reference has a cell a lane, in one array.

A reference that all lanes share is read as it is. What the lanes add to it is summed, what one
adds at an index of its own goes to that place: indexing stays sparse.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import lit
from effax.ir.dtypes import int_bounds, is_integer
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    EmptyRef,
    FreeRef,
    Freeze,
    Get,
    Mul,
    NewRef,
    ReduceSum,
    Swap,
)
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import BatchBuilder, BatchOut
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.rules.common.pointwise import const, where
from effax.transforms.rules.index.batched_indexer import batched_indexer
from effax.transforms.vmap.common import unbatched_ref_write


def new_ref_batch(
    b: BatchBuilder, prim: NewRef, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


def empty_ref_batch(
    b: BatchBuilder, prim: EmptyRef, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    inner = prim.inner.update(shape=(size, *prim.inner.shape))
    return BatchOut([b(EmptyRef(inner))], [True])


def get_batch(
    b: BatchBuilder, prim: Get, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    ref, *operands = ins
    shape, axis = _lane(ref, batched[0], size)
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[1:], axis)
    part = b(Get(wider.indexer), ref, *wider.operands)
    return BatchOut([wider.lane_order(b, part)], [True])


def swap_batch(
    b: BatchBuilder, prim: Swap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Lanes that are not here write back what is there."""
    ref, value, *operands = ins
    if not batched[0]:
        if True in batched:
            raise unbatched_ref_write(0, "a value or an index that differs between lanes")
        if b.mask is not None:
            raise unbatched_ref_write(0, "a write under a predicate that differs between lanes")
        return BatchOut([b(prim, *ins)], [False])
    shape, axis = _lane(ref, True, size)
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[2:], axis)
    new = to_front(b, value, batched[1], size)
    if b.mask is not None:
        there = wider.lane_order(b, b(Get(wider.indexer), ref, *wider.operands))
        new = where(b, _beside(b, b.mask, new), new, there)
    old = b(Swap(wider.indexer), ref, wider.index_order(b, new), *wider.operands)
    return BatchOut([wider.lane_order(b, old)], [True])


def add_update_batch(
    b: BatchBuilder, prim: AddUpdate, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Lanes that are not here add zero."""
    ref, value, *operands = ins
    differs = batched[1]
    if b.mask is not None:
        value = to_front(b, value, differs, size)
        value = where(b, _beside(b, b.mask, value), value, const(0, value))
        differs = True
    if batched[0] or True in batched[2:]:
        shape, axis = _lane(ref, batched[0], size)
        wider = batched_indexer(b, prim.indexer, shape, operands, batched[2:], axis)
        value = wider.index_order(b, to_front(b, value, differs, size))
        b.emit(AddUpdate(wider.indexer), [ref, value, *wider.operands])
    else:
        # All lanes add at one place: r[i] += sum over lanes of x
        total = b(ReduceSum((0,)), value) if differs else _times(b, value, size)
        b.emit(prim, [ref, total, *operands])
    return BatchOut([], [])


def freeze_batch(
    b: BatchBuilder, prim: Freeze, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


def free_ref_batch(
    b: BatchBuilder, prim: FreeRef, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), [])


def _lane(ref: Atom, batched: bool, size: int) -> tuple[tuple[int, ...], int | None]:
    """The shape of one lane of the reference, and its batch axis if it has one."""
    return (ref.type.shape[1:], size) if batched else (ref.type.shape, None)


def _beside(b: BatchBuilder, active: Atom, value: Atom) -> Atom:
    """The mask of lanes in the shape of a value of all lanes."""
    shape = value.type.shape
    return active if len(shape) == 1 else b(BroadcastInDim(shape, (0,)), active)


def _times(b: BatchBuilder, value: Atom, size: int) -> Atom:
    """What ``size`` lanes add that all add the same."""
    dtype = value.type.dtype
    if is_integer(dtype) and size > int_bounds(dtype)[1]:
        return b(ReduceSum((0,)), to_front(b, value, False, size))
    return b(Mul(), value, lit(size, value.type))
