"""Lowering of ``sort``, ``top_k``, ``argmax`` and ``argmin``.

XLA's CPU backend has a partial sort of float32 matrices, by the total order of IEEE 754:
-nan < -inf < -0 < +0 < inf < nan. Elements are converted to float32 keys, in which equal elements
have equal bits, and the values are gathered at the keys' positions. Elements of more than 32 bits
are sorted in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import FLOAT32, INT32, family, is_inexact_dtype
from effax.ir.indexing import Indexer, Pick
from effax.ir.prims import Gather
from effax.ir.prims.reduce import Reduction
from effax.ir.prims.sort import ArgReduction
from effax.ir.types import array_type
from effax.lowering import ops
from effax.lowering.rules.reduce import combined, widened
from effax.lowering.writer import NO_RULES, LoweringRule, LoweringRules, Val, Writer


def arg_rule(extreme: type[Reduction]) -> LoweringRule[ArgReduction]:
    """Return the rule of argmax or argmin.

    Two reductions, which XLA vectorizes: the extreme element, nan if there is one, then the least
    index at which it occurs.
    """

    def rule(w: Writer, prim: ArgReduction, ins: Sequence[Val]) -> Sequence[Val]:
        x = widened(w, ins[0])
        kept = [i for i in range(len(x.shape)) if i != prim.axis]
        found = ops.broadcast(w, combined(w, extreme, x, [prim.axis]), x.shape, kept)
        here = ops.compare(w, "EQ", x, found)
        if is_inexact_dtype(x.type.dtype):
            here = ops.same(w, "or", here, ops.compare(w, "NE", x, x))
        size = x.shape[prim.axis]
        counted = ops.iota(
            w, x.type.update(dtype=ops.index_dtype([], (size,)), weak=False), prim.axis
        )
        places = ops.select(w, here, counted, ops.full(w, size, counted))
        last = w.constant(size, counted.type.update(shape=()))
        first = ops.reduce(w, "minimum", places, last, [prim.axis])
        return (ops.convert(w, first, prim.index_dtype),)

    return rule


def sort(w: Writer, prim: p.Sort, ins: Sequence[Val]) -> Sequence[Val]:
    elements = [x.type.update(shape=()) for x in ins]

    def before(*pairs: Val) -> Sequence[Val]:
        keys = [(pairs[2 * k], pairs[2 * k + 1]) for k in range(prim.num_keys)]
        return (_lexicographic(w, keys),)

    body = w.region([t for t in elements for _ in range(2)], before)
    names = ", ".join([x.name for x in ins])
    types = [x.type for x in ins]
    text = (
        f'"stablehlo.sort"({names}) <{{dimension = {prim.dimension} : i64, is_stable = true}}> '
        f"({body}) : {ops.signature(ins, *types)}"
    )
    return w.op(text, *types)


def top_k(w: Writer, prim: p.TopK, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a stable sort in descending order, and slice the first ``k``."""
    (x,) = ins
    at = ops.iota(w, x.type.update(dtype=INT32, weak=False), prim.axis)
    elements = [v.type.update(shape=()) for v in (x, at)]
    body = w.region([t for t in elements for _ in range(2)], lambda a, b, *_: (_less(w, b, a),))
    text = (
        f'"stablehlo.sort"({x}, {at}) <{{dimension = {prim.axis} : i64, is_stable = true}}> '
        f"({body}) : {ops.signature([x, at], x.type, at.type)}"
    )
    starts = (0,) * len(x.shape)
    limits = tuple([prim.k if i == prim.axis else n for i, n in enumerate(x.shape)])
    strides = (1,) * len(x.shape)
    return [ops.slice_(w, v, starts, limits, strides) for v in w.op(text, x.type, at.type)]


def _lexicographic(w: Writer, keys: Sequence[tuple[Val, Val]]) -> Val:
    (a, b), *rest = keys
    less = _less(w, a, b)
    if not rest:
        return less
    later = ops.same(w, "and", _equal(w, a, b), _lexicographic(w, rest))
    return ops.same(w, "or", less, later)


def _is_nan(w: Writer, x: Val) -> Val:
    return ops.compare(w, "NE", x, x)


def _less(w: Writer, a: Val, b: Val) -> Val:
    """Return whether ``a`` sorts before ``b``: nan is the greatest."""
    less = ops.compare(w, "LT", a, b)
    if not is_inexact_dtype(a.type.dtype):
        return less
    number = ops.compare(w, "EQ", a, a)
    return ops.same(w, "or", less, ops.same(w, "and", number, _is_nan(w, b)))


def _equal(w: Writer, a: Val, b: Val) -> Val:
    equal = ops.compare(w, "EQ", a, b)
    if not is_inexact_dtype(a.type.dtype):
        return equal
    return ops.same(w, "or", equal, ops.same(w, "and", _is_nan(w, a), _is_nan(w, b)))


PICKED: Final = Gather(Indexer((Pick(None), Pick(None))))


def partly_sorted(w: Writer, prim: p.TopK, ins: Sequence[Val]) -> Sequence[Val]:
    """Write ``top_k`` of each row by XLA's partial sort."""
    (x,) = ins
    if x.type.dtype.itemsize > FLOAT32.itemsize or 0 in (prim.k, x.type.size):
        return top_k(w, prim, ins)
    axes = list(range(len(x.shape)))
    last = [i for i in axes if i != prim.axis] + [prim.axis]
    lines = ops.transpose(w, x, last)
    n = lines.shape[-1]
    rows = ops.reshape(w, lines, (x.type.size // n, n))
    found = [array_type((rows.shape[0], prim.k), dtype) for dtype in (FLOAT32, INT32)]
    keys = _keys(w, rows)
    given = ops.signature([keys], *found).partition(" -> ")[2]
    text = f"chlo.top_k({keys}, k = {prim.k}) : {keys.text} -> {given}"
    _, at = w.op(text, *found)
    numbers = ops.iota(w, array_type((rows.shape[0], 1), INT32), 0)
    values = w.apply1(PICKED, rows, numbers, at)
    back = [last.index(i) for i in axes]
    shape = (*lines.shape[:-1], prim.k)
    return [ops.transpose(w, ops.reshape(w, v, shape), back) for v in (values, at)]


def _keys(w: Writer, x: Val) -> Val:
    """Return float32 keys whose total order is the order of the elements."""
    dtype = x.type.dtype
    if family(dtype) in ("int", "uint") and dtype.itemsize == INT32.itemsize:
        signed = x
        if family(dtype) == "uint":
            signed = ops.bitcast(w, ops.same(w, "xor", x, ops.full(w, 2**31, x)), INT32)
        # In the total order, a negative float is the greater the less its magnitude bits.
        flipped = ops.same(w, "xor", signed, ops.full(w, 2**31 - 1, signed))
        negative = ops.compare(w, "LT", signed, ops.full(w, 0, signed))
        return ops.bitcast(w, ops.select(w, negative, flipped, signed), FLOAT32)
    wide = ops.convert(w, x, FLOAT32)
    zero = ops.full(w, 0, wide)
    plain = ops.select(w, ops.compare(w, "EQ", wide, zero), zero, wide)
    nan = ops.compare(w, "NE", wide, wide)
    return ops.select(w, nan, ops.full(w, math.nan, wide), plain)


RULES: Final[LoweringRules] = (
    NO_RULES.extend(p.Sort, sort)
    .extend(p.TopK, top_k)
    .extend(p.Argmax, arg_rule(p.ReduceMax))
    .extend(p.Argmin, arg_rule(p.ReduceMin))
)

HOST_RULES: Final[LoweringRules] = NO_RULES.extend(p.TopK, partly_sorted)
"""Rules for modules that run in this process, on CPU."""
