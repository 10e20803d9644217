"""Rules of ``scatter_mul``, ``scatter_max`` and ``scatter_min``.

Where positions repeat, all values combine. The derivative of a product does not divide, so it is
exact where factors are zero; equal extremes share the tangent equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from effax.ir import prims
from effax.ir.build import lit
from effax.ir.dtypes import INT32, family
from effax.ir.indexing import Indexer, Mode, Pick, Span, is_dynamic, layout
from effax.ir.prims import BroadcastInDim, Concatenate, Iota, Reshape, Rev, Slice, Sort
from effax.ir.prims import index as p
from effax.ir.syntax import Atom
from effax.ir.types import Shape, array_type
from effax.transforms.framework.rules import (
    JvpOut,
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import inverse, permuted, zeros
from effax.transforms.rules.common.generic_rules import add_tangents
from effax.transforms.rules.common.linear_operands import fixed, only
from effax.transforms.rules.common.pointwise import (
    add,
    const,
    div,
    mul,
    nonzero,
    scaled,
    where,
)
from effax.transforms.rules.reduce import Dual, running_tree


def mul_jvp(
    b: RuleBuilder, prim: p.ScatterMul, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate y = x·Π_k v_k at each position: dy = dx·Π_k v_k + x·Σ_k dv_k·Π_{j≠k} v_j."""
    x, value, *operands = primals
    dx, dv = tangents[:2]
    y = b(prim, x, value, *operands)
    dy: Atom | None = None if dx is None else b(prim, dx, value, *operands)
    if dv is not None:
        part = mul(b, dv, b(p.Gather(prim.indexer), x, *operands))
        others = _product_of_others(b, prim.indexer, x.type.shape, value, operands)
        part = part if others is None else mul(b, part, others)
        added = b(p.ScatterAdd(prim.indexer), zeros(b, x.type), part, *operands)
        dy = add_tangents(b, dy, added)
    return JvpOut([y], [dy])


def mul_transpose(
    b: RuleBuilder, prim: p.ScatterMul, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # linear in x: <ct, x·Πv> = <ct·Πv, x>
    others = fixed(prim, ins, 1)
    return [b(prim, only(cts), *others), *(None for _ in others)]


def _product_of_others(
    b: RuleBuilder, indexer: Indexer, shape: Shape, value: Atom, operands: Sequence[Atom]
) -> Atom | None:
    """Return for each value the product of the others at its position.

    Returns None if no two values can have the same position. Sorted by position, the values of
    one position are adjacent, and the result is the product of those before times the product of
    those after: two segmented scans.
    """
    place = layout(indexer, [o.type.shape for o in operands])
    count = prod(place.pick_shape)
    if count < 2:
        return None
    numbers = pick_numbers(b, indexer, shape, operands, place.pick_shape)
    ids, order = b.emit(Sort(0), [numbers, b(Iota(INT32, (count,), 0))])
    n = len(place.pick_shape)
    front = [*range(place.position, place.position + n)]
    front += [i for i in range(len(place.shape)) if i not in front]
    moved = permuted(b, value, front)
    rows_shape = (count, *moved.type.shape[n:])
    rows = Indexer((Pick(None), *(Span(0, k) for k in rows_shape[1:])))
    by_position = b(p.Gather(rows), b(Reshape(rows_shape), moved), order)
    differs = b(prims.Ne(), _span(b, ids, 1, count), _span(b, ids, 0, count - 1))
    edge = b(prims.ConvertElementType(INT32), differs)
    before = _running_before(b, by_position, edge)
    backward = [b(Rev((0,)), a) for a in (by_position, edge)]
    after = b(Rev((0,)), _running_before(b, *backward))
    sorted_products = mul(b, before, after)
    _, places = b.emit(Sort(0), [order, b(Iota(INT32, (count,), 0))])
    products = b(p.Gather(rows), sorted_products, places)
    return permuted(b, b(Reshape(moved.type.shape), products), inverse(front))


def _running_before(b: RuleBuilder, rows: Atom, edges: Atom) -> Atom:
    """Return the exclusive segmented product of rows.

    ``edges`` is 1 where a row after the first begins a segment, else 0.
    """
    count, *rest = rows.type.shape
    first = b(BroadcastInDim((1,), ()), lit(1, array_type((), INT32)))
    starts = b(Concatenate(0), first, edges)
    full = b(BroadcastInDim((count, *rest), (0,)), starts) if rest else starts
    begins = b(prims.Eq(), full, const(1, full))
    ones = b(BroadcastInDim((1, *rest), ()), const(1, rows))
    shifted = b(Concatenate(0), ones, _span(b, rows, 0, count - 1))
    masked = where(b, begins, const(1, rows), shifted)
    return running_tree(b, _segmented_product, (masked, full), 0)[0]


def _segmented_product(b: RuleBuilder, left: Dual, right: Dual) -> Dual:
    """Combine two (product, flag) pairs: the right product alone if it begins a segment."""
    (x, before), (y, begins) = left, right
    here = b(prims.Eq(), begins, const(1, begins))
    return where(b, here, y, mul(b, x, y)), b(prims.Max(), before, begins)


def _span(b: RuleBuilder, x: Atom, start: int, stop: int) -> Atom:
    shape = x.type.shape
    return b(Slice((start, *(0 for _ in shape[1:])), (stop, *shape[1:])), x)


def pick_numbers(
    b: RuleBuilder, indexer: Indexer, shape: Shape, operands: Sequence[Atom], picks: Shape
) -> Atom:
    """Return one number for each pick, equal for equal positions; -1 for a dropped one."""
    feed = iter(operands)
    number: Atom | None = None
    inside: Atom | None = None
    for dim, size in zip(indexer.dims, shape, strict=True):
        operand: Atom | None = next(feed) if is_dynamic(dim) else None
        if operand is None or not isinstance(dim, Pick):
            continue
        if operand.type.dtype.itemsize < 4:
            operand = b(prims.ConvertElementType(INT32), operand)
        if dim.wraps:
            operand = wrapped(b, operand, size)
        low, high = const(0, operand), const(max(size - 1, 0), operand)
        at: Atom = b(prims.ConvertElementType(INT32), b(prims.Clamp(), low, operand, high))
        at = _over(b, at, picks)
        number = at if number is None else add(b, scaled(b, number, max(size, 1)), at)
        if indexer.mode is Mode.DROP:
            both = b(prims.And(), b(prims.Ge(), operand, low), b(prims.Le(), operand, high))
            here = _over(b, both, picks)
            inside = here if inside is None else b(prims.And(), inside, here)
    assert number is not None, "several picks have a dynamic operand"
    if inside is not None:
        number = where(b, inside, number, const(-1, number))
    return b(Reshape((prod(picks),)), number)


def wrapped(b: RuleBuilder, index: Atom, size: int) -> Atom:
    """Return positions with negative ones counted from the end."""
    if family(index.type.dtype) == "uint":
        return index
    below = b(prims.Lt(), index, const(0, index))
    return where(b, below, b(prims.Add(), index, const(size, index)), index)


def _over(b: RuleBuilder, x: Atom, picks: Shape) -> Atom:
    """Return an operand broadcast to the shape of the picks."""
    axes = tuple(range(len(picks) - len(x.type.shape), len(picks)))
    return x if x.type.shape == picks else b(BroadcastInDim(picks, axes), x)


def extreme_jvp(
    b: RuleBuilder, prim: p.Combining, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return the mean of the tangents of the elements equal to the extreme, by position."""
    x, value, *operands = primals
    dx, dv = tangents[:2]
    y = b(prim, x, value, *operands)
    there = b(p.Gather(prim.indexer), y, *operands)
    dtype = prims.ConvertElementType(x.type.dtype)
    in_x, in_v = b(dtype, b(prims.Eq(), x, y)), b(dtype, b(prims.Eq(), value, there))
    total = b(p.ScatterAdd(prim.indexer), in_x, in_v, *operands)
    moved = zeros(b, x.type) if dx is None else mul(b, dx, in_x)
    if dv is not None:
        moved = b(p.ScatterAdd(prim.indexer), moved, mul(b, dv, in_v), *operands)
    return JvpOut([y], [div(b, moved, nonzero(b, total))])
