"""Batching of reference primitives: a batched reference has a leading batch axis.

An unbatched reference is shared by all batch elements: they read the same contents, and their
accumulations are summed, at batched indices by a sparse update. A write to it must be uniform.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import lit
from effax.ir.dtypes import int_bounds, is_integer
from effax.ir.prims import (
    AddUpdate,
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
from effax.transforms.rules.common.arrays import mask_like, to_front
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
    shape, axis = _split_axis(ref, batched[0], size)
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[1:], axis)
    part = b(Get(wider.indexer), ref, *wider.operands)
    return BatchOut([wider.batch_first(b, part)], [True])


def swap_batch(
    b: BatchBuilder, prim: Swap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Swap in each batch element; inactive elements write back the present contents."""
    ref, value, *operands = ins
    if not batched[0]:
        if True in batched:
            raise unbatched_ref_write(0, "a value or an index that is batched")
        if b.mask is not None:
            raise unbatched_ref_write(0, "a write under a batched predicate")
        return BatchOut([b(prim, *ins)], [False])
    shape, axis = _split_axis(ref, True, size)
    wider = batched_indexer(b, prim.indexer, shape, operands, batched[2:], axis)
    new = to_front(b, value, batched[1], size)
    if b.mask is not None:
        present = wider.batch_first(b, b(Get(wider.indexer), ref, *wider.operands))
        new = where(b, mask_like(b, b.mask, new), new, present)
    old = b(Swap(wider.indexer), ref, wider.index_order(b, new), *wider.operands)
    return BatchOut([wider.batch_first(b, old)], [True])


def add_update_batch(
    b: BatchBuilder, prim: AddUpdate, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Accumulate in each batch element; inactive elements add zero."""
    ref, value, *operands = ins
    differs = batched[1]
    if b.mask is not None:
        value = to_front(b, value, differs, size)
        value = where(b, mask_like(b, b.mask, value), value, const(0, value))
        differs = True
    if batched[0] or True in batched[2:]:
        shape, axis = _split_axis(ref, batched[0], size)
        wider = batched_indexer(b, prim.indexer, shape, operands, batched[2:], axis)
        value = wider.index_order(b, to_front(b, value, differs, size))
        b.emit(AddUpdate(wider.indexer), [ref, value, *wider.operands])
    else:
        # All batch elements add at one position: r[i] += Σ_k x_k
        total = b(ReduceSum((0,)), value) if differs else _repeated_sum(b, value, size)
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


def _split_axis(ref: Atom, batched: bool, size: int) -> tuple[tuple[int, ...], int | None]:
    """Return the shape of one batch element of a reference, and the size of its batch axis."""
    return (ref.type.shape[1:], size) if batched else (ref.type.shape, None)


def _repeated_sum(b: BatchBuilder, value: Atom, size: int) -> Atom:
    """Return ``size · value``, as a sum if ``size`` is no value of the dtype."""
    dtype = value.type.dtype
    if is_integer(dtype) and size > int_bounds(dtype)[1]:
        return b(ReduceSum((0,)), to_front(b, value, False, size))
    return b(Mul(), value, lit(size, value.type))
