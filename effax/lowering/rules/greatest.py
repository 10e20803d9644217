"""Lowering of ``top_k`` for the host's processor, where XLA has a partial sort.

It is one of matrices of float32, by the total order of IEEE 754: -nan < -inf < -0 < +0 < inf < nan.
So elements become keys of float32, in which equal elements have equal bits, and the values are
looked up where the keys were found. What does not fit into 32 bits is sorted as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from effax.ir.dtypes import FLOAT32, INT32, family
from effax.ir.indexing import Indexer, Pick
from effax.ir.prims import Gather, TopK
from effax.ir.types import array_type
from effax.lowering import ops
from effax.lowering.rules.reduce import top_k
from effax.lowering.writer import NO_RULES, Val, Writer

PICKED: Final = Gather(Indexer((Pick(None), Pick(None))))


def partly_sorted(w: Writer, prim: TopK, ins: Sequence[Val]) -> Sequence[Val]:
    """Of each row, by XLA's partial sort."""
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
    """The elements as float32 in whose total order they are what they are among themselves."""
    dtype = x.type.dtype
    if family(dtype) in ("int", "uint") and dtype.itemsize == INT32.itemsize:
        signed = x
        if family(dtype) == "uint":
            signed = ops.bitcast(w, ops.same(w, "xor", x, ops.full(w, 2**31, x)), INT32)
        # In that order, floats of the other sign are the greater the less their bits.
        flipped = ops.same(w, "xor", signed, ops.full(w, 2**31 - 1, signed))
        negative = ops.compare(w, "LT", signed, ops.full(w, 0, signed))
        return ops.bitcast(w, ops.select(w, negative, flipped, signed), FLOAT32)
    wide = ops.convert(w, x, FLOAT32)
    zero = ops.full(w, 0, wide)
    plain = ops.select(w, ops.compare(w, "EQ", wide, zero), zero, wide)
    nan = ops.compare(w, "NE", wide, wide)
    return ops.select(w, nan, ops.full(w, math.nan, wide), plain)


GREATEST: Final = NO_RULES.extend(TopK, partly_sorted)
