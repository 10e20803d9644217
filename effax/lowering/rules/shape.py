"""Lowering of primitives that rearrange elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.ir import prims as p
from effax.ir.dtypes import INT32
from effax.ir.types import array_type
from effax.lowering import ops
from effax.lowering.mlir_text import dense
from effax.lowering.writer import NO_RULES, LoweringRules, Val, Writer


def reshape(w: Writer, prim: p.Reshape, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.reshape(w, ins[0], prim.new_sizes),)


def broadcast_in_dim(w: Writer, prim: p.BroadcastInDim, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.broadcast(w, ins[0], prim.shape, prim.broadcast_dimensions),)


def transpose(w: Writer, prim: p.Transpose, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.transpose(w, ins[0], prim.permutation),)


def squeeze(w: Writer, prim: p.Squeeze, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    kept = tuple([n for i, n in enumerate(x.shape) if i not in prim.dimensions])
    return (ops.reshape(w, x, kept),)


def expand_dims(w: Writer, prim: p.ExpandDims, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    rest = iter(x.shape)
    ndim = len(x.shape) + len(prim.dimensions)
    shape = tuple([1 if i in prim.dimensions else next(rest) for i in range(ndim)])
    return (ops.reshape(w, x, shape),)


def concatenate(w: Writer, prim: p.Concatenate, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.concatenate(w, ins, prim.dimension),)


def pad(w: Writer, prim: p.Pad, ins: Sequence[Val]) -> Sequence[Val]:
    x, value = ins
    unpadded = all(low == high == inner == 0 for low, high, inner in prim.padding_config)
    return (x if unpadded else ops.pad(w, x, value, prim.padding_config),)


def rev(w: Writer, prim: p.Rev, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.reverse(w, ins[0], prim.dimensions),)


def slice_(w: Writer, prim: p.Slice, ins: Sequence[Val]) -> Sequence[Val]:
    strides = prim.strides or (1,) * len(prim.start_indices)
    return (ops.slice_(w, ins[0], prim.start_indices, prim.limit_indices, strides),)


def iota(w: Writer, prim: p.Iota, ins: Sequence[Val]) -> Sequence[Val]:
    return (ops.iota(w, array_type(prim.shape, prim.dtype), prim.dimension),)


def constant(w: Writer, prim: p.Constant, ins: Sequence[Val]) -> Sequence[Val]:
    value = prim.value.value
    type_ = array_type(value.shape, value.dtype)
    if value.dtype.kind != "b":
        return (w.op1(dense(value, type_), type_),)
    # Booleans are packed in bits there: they are compared as bytes.
    bits = type_.update(dtype=np.dtype("uint8"))
    return (ops.convert(w, w.op1(dense(value.astype("uint8"), bits), bits), type_.dtype),)


def dim_value(w: Writer, prim: p.DimValue, ins: Sequence[Val]) -> Sequence[Val]:
    return (w.constant(prim.dim, array_type((), INT32)),)


RULES: Final[LoweringRules] = (
    NO_RULES.extend(p.Reshape, reshape)
    .extend(p.BroadcastInDim, broadcast_in_dim)
    .extend(p.Transpose, transpose)
    .extend(p.Squeeze, squeeze)
    .extend(p.ExpandDims, expand_dims)
    .extend(p.Concatenate, concatenate)
    .extend(p.Pad, pad)
    .extend(p.Rev, rev)
    .extend(p.Slice, slice_)
    .extend(p.Iota, iota)
    .extend(p.Constant, constant)
    .extend(p.DimValue, dim_value)
)
