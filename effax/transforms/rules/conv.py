"""Rules of convolution: it is linear in each operand, and every rule of it is a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.prims import ConvertElementType, ConvGeneralDilated, Reshape, Rev
from effax.ir.prims.conv import dilated
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType
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
from effax.transforms.rules.common.arrays import array_of, permuted
from effax.transforms.rules.common.generic_rules import no_refs
from effax.transforms.rules.common.linear_operands import at, linear_operand, only
from effax.transforms.rules.common.pointwise import add
from effax.transforms.rules.convert import convert_back


def _conv_jvp(
    b: RuleBuilder,
    prim: ConvGeneralDilated,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    # d(x * w) = dx * w + x * dw
    x, w = primals
    dx, dw = tangents
    parts = [] if dx is None else [b(prim, dx, w)]
    if dw is not None:
        parts.append(b(prim, x, dw))
    return JvpOut([b(prim, x, w)], [parts[0] if len(parts) == 1 else add(b, *parts)])


def _conv_transpose(
    b: RuleBuilder,
    prim: ConvGeneralDilated,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    ct = only(cts)
    position, operand, (other,) = linear_operand(prim, ins)
    if 0 in (*ct.type.shape, *other.type.shape):
        return [None, None]
    if other.type.dtype != ct.type.dtype:
        other = b(ConvertElementType(ct.type.dtype), other)
    rule = _to_rhs if position else _to_lhs
    made = rule(b, prim, array_of(operand), other, ct)
    return at(position, convert_back(b, made, array_of(operand)), ins)


def _to_lhs(b: RuleBuilder, prim: ConvGeneralDilated, lhs: ArrayType, rhs: Atom, ct: Atom) -> Atom:
    """The cotangent, its neighbours a stride apart, convolved with rhs backward.

    Features in and out of each group change places.
    """
    groups = prim.feature_group_count
    outs, ins, *space = rhs.type.shape
    axes = range(2, len(lhs.shape))
    swapped = _axes_swapped(b, rhs, groups, (groups * ins, outs // groups, *space))
    padding = []
    for i, k in enumerate(space):
        low, _ = prim.padding[i]
        size = dilated(lhs.shape[2 + i], prim.lhs_dilation[i])
        out = dilated(ct.type.shape[2 + i], prim.window_strides[i])
        padding.append((dilated(k, prim.rhs_dilation[i]) - 1 - low, size - out + low))
    back = replace(
        prim,
        window_strides=prim.lhs_dilation,
        lhs_dilation=prim.window_strides,
        padding=tuple(padding),
        preferred_element_type=None,
    )
    return b(back, ct, b(Rev(tuple(axes)), swapped))


def _to_rhs(b: RuleBuilder, prim: ConvGeneralDilated, rhs: ArrayType, lhs: Atom, ct: Atom) -> Atom:
    """lhs convolved with the cotangent: the batch is contracted, features in are the batch."""
    groups = prim.feature_group_count
    _, features, *space = lhs.type.shape
    ins, outs = features // groups, ct.type.shape[1]
    x = _features_first(b, lhs, groups)
    # (batch, outs, ...) -> (outs, batch, ...)
    w = permuted(b, ct, [1, 0, *range(2, 2 + len(space))])
    padding = []
    for i, k in enumerate(rhs.shape[2:]):
        low, _ = prim.padding[i]
        size = dilated(space[i], prim.lhs_dilation[i])
        out = dilated(ct.type.shape[2 + i], prim.window_strides[i])
        padding.append((low, out - size - low + dilated(k, prim.rhs_dilation[i]) - 1))
    back = replace(
        prim,
        window_strides=prim.rhs_dilation,
        rhs_dilation=prim.window_strides,
        padding=tuple(padding),
        preferred_element_type=None,
    )
    made = b(back, x, w)
    assert made.type.shape == (ins, outs, *rhs.shape[2:])
    return permuted(b, made, [1, 0, *range(2, 2 + len(space))])


def _features_first(b: RuleBuilder, lhs: Atom, groups: int) -> Atom:
    """(batch, groups · ins, ...) as (ins, groups · batch, ...)."""
    batch, features, *space = lhs.type.shape
    ins = features // groups
    if groups == 1:
        return permuted(b, lhs, [1, 0, *range(2, 2 + len(space))])
    apart = b(Reshape((batch, groups, ins, *space)), lhs)
    moved = permuted(b, apart, [2, 1, 0, *range(3, 3 + len(space))])
    return b(Reshape((ins, groups * batch, *space)), moved)


def _axes_swapped(b: RuleBuilder, rhs: Atom, groups: int, shape: tuple[int, ...]) -> Atom:
    """(groups · outs, ins, ...) as (groups · ins, outs, ...)."""
    outs, ins, *space = rhs.type.shape
    rest = range(3, 3 + len(space))
    if groups == 1:
        return permuted(b, rhs, [1, 0, *range(2, 2 + len(space))])
    apart = b(Reshape((groups, outs // groups, ins, *space)), rhs)
    return b(Reshape(shape), permuted(b, apart, [0, 2, 1, *rest]))


def _conv_batch(
    b: RuleBuilder,
    prim: ConvGeneralDilated,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    """Lanes of lhs join its batch; of rhs, its features out; of both, they are groups."""
    lhs, rhs = ins
    groups = prim.feature_group_count
    if not batched[1]:
        _, batch, *rest = lhs.type.shape
        out = b(prim, b(Reshape((size * batch, *rest)), lhs), rhs)
        return BatchOut([b(Reshape((size, batch, *out.type.shape[1:])), out)], [True])
    _, outs, features, *space = rhs.type.shape
    per = outs // groups
    if not batched[0]:
        # (lanes, groups, per, ...) -> (groups, lanes, per, ...)
        apart = b(Reshape((size, groups, per, features, *space)), rhs)
        moved = permuted(b, apart, [1, 0, *range(2, 4 + len(space))])
        out = b(prim, lhs, b(Reshape((size * outs, features, *space)), moved))
        batch, _, *shape = out.type.shape
        parted = b(Reshape((batch, groups, size, per, *shape)), out)
        found = permuted(b, parted, [2, 0, 1, *range(3, 4 + len(shape))])
        return BatchOut([b(Reshape((size, batch, outs, *shape)), found)], [True])
    _, batch, channels, *sizes = lhs.type.shape
    side_by_side = permuted(b, lhs, [1, 0, *range(2, 3 + len(sizes))])
    joined = b(Reshape((batch, size * channels, *sizes)), side_by_side)
    wide = replace(prim, feature_group_count=size * groups)
    out = b(wide, joined, b(Reshape((size * outs, features, *space)), rhs))
    lanes = b(Reshape((batch, size, outs, *out.type.shape[2:])), out)
    return BatchOut([permuted(b, lanes, [1, 0, *range(2, len(lanes.type.shape))])], [True])


RULES: Final[RuleSet] = NO_RULES.extend(
    ConvGeneralDilated,
    Rules(
        jvp=_conv_jvp,
        transpose=_conv_transpose,
        batch=_conv_batch,
        split=Indivisible(),
        discharge=no_refs,
    ),
)
