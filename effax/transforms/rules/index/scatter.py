"""Rules of ``scatter`` and ``scatter_add``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from effax.ir.dtypes import INT32
from effax.ir.indexing import Indexer, Pick, is_dynamic, layout
from effax.ir.primitive import Primitive
from effax.ir.prims import And, BroadcastInDim, Eq, Gt, Iota, Not, ReduceOr, Reshape
from effax.ir.prims import index as p
from effax.ir.syntax import Atom
from effax.ir.types import Shape, array_type
from effax.transforms.framework.rules import (
    BatchOut,
    JvpOut,
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.linear_operands import fixed, only
from effax.transforms.rules.common.pointwise import const, where
from effax.transforms.rules.index.batched_indexer import batched_indexer
from effax.transforms.rules.index.combining import pick_numbers


def update_jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate d scatter(x, v, i) = scatter(dx, dv, i)."""
    y = b(prim, *primals)
    given = zip(primals[:2], tangents[:2], strict=True)
    parts = [zeros(b, x.type) if d is None else d for x, d in given]
    return JvpOut([y], [b(prim, *parts, *primals[2:])])


def scatter_add_jvp(
    b: RuleBuilder, prim: p.ScatterAdd, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    # d scatter_add(x, v, i) = scatter_add(dx, dv, i), which is dx if dv is zero
    if tangents[1] is None:
        return JvpOut([b(prim, *primals)], [tangents[0]])
    return update_jvp(b, prim, primals, tangents)


def winners(
    b: RuleBuilder, indexer: Indexer, shape: Shape, operands: Sequence[Atom], part: Shape
) -> Atom | None:
    """Return the mask of elements of an indexed part that are the last written to their position.

    Returns None if no two picks can have the same position. Few picks are compared in pairs;
    the numbers of many are written through the same indexer and read back.

    Args:
        b: the builder that computes the mask.
        indexer: the indexer of the write.
        shape: the shape of the array that is written.
        operands: the operands of the indexer.
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
    sizes = [n for n, _ in picks]
    dims = tuple(range(place.position, place.position + len(place.pick_shape)))
    if 0 < count * count <= 4 * prod(sizes):
        found = _last_of_equals(b, pick_numbers(b, indexer, shape, operands, place.pick_shape))
        return b(BroadcastInDim(part, dims), b(Reshape(place.pick_shape), found))
    numbers = b(Reshape(place.pick_shape), b(Iota(INT32, (count,), 0)))
    table = zeros(b, array_type(sizes, INT32))
    positions = Indexer(tuple([d for d, _, _ in dynamic if isinstance(d, Pick)]), indexer.mode)
    given = [o for _, o in picks]
    last = b(p.Gather(positions), b(p.Scatter(positions), table, numbers, *given), *given)
    return b(BroadcastInDim(part, dims), b(Eq(), last, numbers))


def _last_of_equals(b: RuleBuilder, x: Atom) -> Atom:
    """Return for each element of a vector whether no later one equals it."""
    n = x.type.shape[0]
    row, column = (b(BroadcastInDim((n, n), (axis,)), x) for axis in (0, 1))
    later = b(Gt(), *(b(Iota(INT32, (n, n), axis)) for axis in (0, 1)))
    return b(Not(), b(ReduceOr((0,)), b(And(), b(Eq(), row, column), later)))


def scatter_transpose(
    b: RuleBuilder, prim: p.Scatter, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = x with y[i] = v: x' = scatter(y', i, 0), v' = y'[i] for values that were not overwritten
    ct = only(cts)
    x, value = ins[:2]
    operands = fixed(prim, ins, 2)
    part = value.type.shape
    dx: Atom | None = None
    dv: Atom | None = None
    # The read comes first, so that the write stays in place.
    if isinstance(value, Linear):
        dv = b(p.Gather(prim.indexer), ct, *operands)
        mask = winners(b, prim.indexer, x.type.shape, operands, part)
        dv = dv if mask is None else where(b, mask, dv, const(0, dv))
    if isinstance(x, Linear):
        dx = b(prim, ct, zeros(b, value.type), *operands)
    return [dx, dv, *(None for _ in operands)]


def scatter_add_transpose(
    b: RuleBuilder, prim: p.ScatterAdd, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = x with y[i] += v: x' = y', v' = y'[i]
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
