"""Lowering of ``dynamic_slice`` and ``dynamic_update_slice``."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir import prims as p
from effax.lowering import ops
from effax.lowering.writer import Val, Writer


def starts(w: Writer, x: Val, indices: Sequence[Val]) -> list[Val]:
    """Return starts of a window of ``x`` in one signed dtype."""
    dtype = ops.index_dtype([i.type for i in indices], x.shape)
    return [ops.index(w, i, dtype) for i in indices]


def dynamic_slice(w: Writer, prim: p.DynamicSlice, ins: Sequence[Val]) -> Sequence[Val]:
    x, *indices = ins
    return (ops.dynamic_slice(w, x, starts(w, x, indices), prim.slice_sizes),)


def dynamic_update_slice(
    w: Writer, prim: p.DynamicUpdateSlice, ins: Sequence[Val]
) -> Sequence[Val]:
    x, update, *indices = ins
    return (ops.dynamic_update_slice(w, x, update, starts(w, x, indices)),)
