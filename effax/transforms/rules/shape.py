"""Rules of primitives that move elements. All are linear, and transposes move elements back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from effax.ir.dtypes import BOOL
from effax.ir.indexing import Indexer, Span
from effax.ir.primitive import Primitive
from effax.ir.prims import AddUpdate, ReduceSum
from effax.ir.prims import shape as p
from effax.ir.syntax import Atom, Lit
from effax.ir.types import Shape, array_type
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchOut,
    BatchRule,
    JvpOut,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
    TransposeRule,
    Unsupported,
)
from effax.transforms.rules.common.arrays import after_batch, inverse, to_front
from effax.transforms.rules.common.generic_rules import (
    array_rules,
    first_linear_jvp,
    linear_jvp,
    no_tangent,
)
from effax.transforms.rules.common.linear_operands import only
from effax.transforms.rules.common.pointwise import const, where

P = TypeVar("P", bound=Primitive)


def as_primitive(make: Callable[[P, int], Primitive]) -> BatchRule[P]:
    """Return the batch rule of a unary primitive: apply the primitive ``make(prim, size)``."""

    def batch(
        b: RuleBuilder, prim: P, ins: Sequence[Atom], batched: Sequence[bool], size: int
    ) -> BatchOut:
        return BatchOut(b.emit(make(prim, size), ins), [True])

    return batch


def _moved(transpose: TransposeRule[P], make: Callable[[P, int], Primitive]) -> Rules[P]:
    """Return the rules of a unary primitive that moves its elements."""
    return array_rules(jvp=first_linear_jvp, transpose=transpose, batch=as_primitive(make))


def _reshape_transpose(
    b: RuleBuilder, prim: p.Reshape, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.Reshape(ins[0].type.shape), only(cts))]


def _broadcast_transpose(
    b: RuleBuilder,
    prim: p.BroadcastInDim,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # The transpose of repetition is a sum, over new axes and over axes of size 1.
    ct = only(cts)
    shape = ins[0].type.shape
    kept = {d for n, d in zip(shape, prim.broadcast_dimensions, strict=True) if n == prim.shape[d]}
    summed = tuple(d for d in range(len(prim.shape)) if d not in kept)
    if summed:
        ct = b(ReduceSum(summed), ct)
    return [ct if ct.type.shape == shape else b(p.Reshape(shape), ct)]


def _transpose_transpose(
    b: RuleBuilder, prim: p.Transpose, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.Transpose(inverse(prim.permutation)), only(cts))]


def _squeeze_transpose(
    b: RuleBuilder, prim: p.Squeeze, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.ExpandDims(prim.dimensions), only(cts))]


def _expand_transpose(
    b: RuleBuilder, prim: p.ExpandDims, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.Squeeze(prim.dimensions), only(cts))]


def _rev_transpose(
    b: RuleBuilder, prim: p.Rev, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(prim, only(cts))]


def spans_of(prim: p.Slice) -> tuple[Span, ...]:
    """Return the positions of a slice along each axis."""
    strides = prim.strides or (1,) * len(prim.start_indices)
    return tuple(
        Span(a, -(-(z - a) // s), s)
        for a, z, s in zip(prim.start_indices, prim.limit_indices, strides, strict=True)
    )


def _slice_transpose(
    b: RuleBuilder, prim: p.Slice, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = x[spans]: x' [spans] += y' in place; else x' = y' padded with zeros
    ct = only(cts)
    (x,) = ins
    spans = spans_of(prim)
    if not all(span.size for span in spans):
        return [None]
    if isinstance(x, Linear) and x.ref is not None:
        b.emit(AddUpdate(Indexer(spans)), [x.ref, ct])
        return [None]
    config = tuple(
        (span[0] or 0, n - (span[0] or 0) - (span.size - 1) * span.step - 1, span.step - 1)
        for span, n in zip(spans, x.type.shape, strict=True)
    )
    return [b(p.Pad(config), ct, const(0, ct))]


def _sliced_after(prim: p.Slice, size: int) -> p.Slice:
    strides = None if prim.strides is None else (1, *prim.strides)
    return p.Slice((0, *prim.start_indices), (size, *prim.limit_indices), strides)


def _concatenate_jvp(
    b: RuleBuilder,
    prim: p.Concatenate,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Differentiate by concatenating tangents; a single one is padded instead."""
    present = [i for i, t in enumerate(tangents) if t is not None]
    if len(present) > 1 or len(primals) == 1:
        return linear_jvp(b, prim, primals, tangents)
    y = b(prim, *primals)
    (i,) = present
    dx = tangents[i]
    assert dx is not None
    sizes = [x.type.shape[prim.dimension] for x in primals]
    config = [(0, 0, 0)] * len(y.type.shape)
    config[prim.dimension] = (sum(sizes[:i]), sum(sizes[i + 1 :]), 0)
    return JvpOut([y], [b(p.Pad(tuple(config)), dx, const(0, dx))])


def _concatenate_transpose(
    b: RuleBuilder,
    prim: p.Concatenate,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    ct = only(cts)
    shape, d = ct.type.shape, prim.dimension
    made: list[Atom | None] = []
    first = 0
    for x in ins:
        end = first + x.type.shape[d]
        starts = tuple(first if i == d else 0 for i in range(len(shape)))
        limits = tuple(end if i == d else n for i, n in enumerate(shape))
        made.append(b(p.Slice(starts, limits), ct) if isinstance(x, Linear) else None)
        first = end
    return made


def _concatenate_batch(
    b: RuleBuilder,
    prim: p.Concatenate,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    args = [to_front(b, x, has, size) for x, has in zip(ins, batched, strict=True)]
    return BatchOut([b(p.Concatenate(prim.dimension + 1), *args)], [True])


def _pad_transpose(
    b: RuleBuilder, prim: p.Pad, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = pad(x, v): x' = y' at the positions of x, v' = Σ y' over all other positions
    ct = only(cts)
    x, value = ins
    dx = _unpad(b, prim, ct, x.type.shape) if isinstance(x, Linear) else None
    dv: Atom | None = None
    if isinstance(value, Linear):
        mask = _operand_mask(b, prim, x.type.shape)
        dv = b(ReduceSum(tuple(range(len(ct.type.shape)))), where(b, mask, const(0, ct), ct))
    return [dx, dv]


def _operand_mask(b: RuleBuilder, prim: p.Pad, shape: Shape) -> Atom:
    """Return the mask of the operand's elements in the result."""
    true, false = (Lit(flag, array_type((), BOOL)) for flag in (True, False))
    inside = b(p.BroadcastInDim(shape, ()), true) if shape else true
    return b(prim, inside, false)


def _unpad(b: RuleBuilder, prim: p.Pad, ct: Atom, shape: Shape) -> Atom | None:
    """Return the elements at the operand's positions; 0 for those that padding removed."""
    if not all(shape):
        return None
    undone = tuple((-low, -high, 0) for low, high, _ in prim.padding_config)
    if any(low or high for low, high, _ in undone):
        ct = b(p.Pad(undone), ct, const(0, ct))
    if any(inner for _, _, inner in prim.padding_config):
        strides = tuple(inner + 1 for _, _, inner in prim.padding_config)
        ct = b(p.Slice((0,) * len(shape), ct.type.shape, strides), ct)
    return ct


def _pad_batch(
    b: RuleBuilder, prim: p.Pad, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    x = to_front(b, ins[0], batched[0], size)
    wider = p.Pad(((0, 0, 0), *prim.padding_config))
    if not batched[1]:
        return BatchOut([b(wider, x, ins[1])], [True])
    # Each batch element has its own padding value: pad with zeros, then select the value.
    padded = b(wider, x, const(0, x))
    mask = to_front(b, _operand_mask(b, prim, x.type.shape[1:]), False, size)
    value = b(p.BroadcastInDim(mask.type.shape, (0,)), ins[1])
    return BatchOut([where(b, mask, padded, value)], [True])


_NULLARY: Final = array_rules(
    jvp=no_tangent,
    transpose=Unsupported("it has no operands"),
    batch=Unsupported("it has no operands"),
)

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        p.Reshape,
        _moved(_reshape_transpose, lambda prim, n: p.Reshape((n, *prim.new_sizes))),
    )
    .extend(
        p.BroadcastInDim,
        _moved(
            _broadcast_transpose,
            lambda prim, n: p.BroadcastInDim(
                (n, *prim.shape), (0, *after_batch(prim.broadcast_dimensions))
            ),
        ),
    )
    .extend(
        p.Transpose,
        _moved(
            _transpose_transpose,
            lambda prim, n: p.Transpose((0, *after_batch(prim.permutation))),
        ),
    )
    .extend(
        p.Squeeze,
        _moved(_squeeze_transpose, lambda prim, n: p.Squeeze(after_batch(prim.dimensions))),
    )
    .extend(
        p.ExpandDims,
        _moved(_expand_transpose, lambda prim, n: p.ExpandDims(after_batch(prim.dimensions))),
    )
    .extend(p.Rev, _moved(_rev_transpose, lambda prim, n: p.Rev(after_batch(prim.dimensions))))
    .extend(p.Slice, replace(_moved(_slice_transpose, _sliced_after), sparse=True))
    .extend(
        p.Concatenate,
        array_rules(
            jvp=_concatenate_jvp, transpose=_concatenate_transpose, batch=_concatenate_batch
        ),
    )
    .extend(
        p.Pad,
        array_rules(jvp=linear_jvp, transpose=_pad_transpose, batch=_pad_batch),
    )
    .extend(p.Iota, _NULLARY)
    .extend(p.Constant, _NULLARY)
    .extend(p.DimValue, _NULLARY)
)
