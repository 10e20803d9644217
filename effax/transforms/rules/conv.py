"""Rules of convolution, which is linear in each operand. Every rule is a convolution again."""

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
    Linear,
    RuleBuilder,
    RuleSet,
)
from effax.transforms.rules.common.arrays import array_of, permuted
from effax.transforms.rules.common.generic_rules import array_rules, bilinear_jvp
from effax.transforms.rules.common.linear_operands import at, linear_operand, only
from effax.transforms.rules.convert import convert_back


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
    """Convolve the cotangent, dilated by the stride, with the reversed rhs.

    y_p = Σ_k x_{sp+k}·w_k, so x_q' = Σ_k w_k·y'_{(q-k)/s} where s divides q - k. Input and
    output features of each group are swapped.
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
    """Convolve lhs with the cotangent: w_k' = Σ_p x_{sp+k}·y_p', which dilates y' by s.

    The batch is contracted, and the input features are the batch.
    """
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
    """Reshape (batch, groups · ins, ...) to (ins, groups · batch, ...)."""
    batch, features, *space = lhs.type.shape
    ins = features // groups
    if groups == 1:
        return permuted(b, lhs, [1, 0, *range(2, 2 + len(space))])
    apart = b(Reshape((batch, groups, ins, *space)), lhs)
    moved = permuted(b, apart, [2, 1, 0, *range(3, 3 + len(space))])
    return b(Reshape((ins, groups * batch, *space)), moved)


def _axes_swapped(b: RuleBuilder, rhs: Atom, groups: int, shape: tuple[int, ...]) -> Atom:
    """Reshape (groups · outs, ins, ...) to (groups · ins, outs, ...)."""
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
    """Merge the batch axis of lhs into its batch, of rhs into its output features.

    If both are batched, the batch elements become groups.
    """
    lhs, rhs = ins
    groups = prim.feature_group_count
    if not batched[1]:
        _, batch, *rest = lhs.type.shape
        out = b(prim, b(Reshape((size * batch, *rest)), lhs), rhs)
        return BatchOut([b(Reshape((size, batch, *out.type.shape[1:])), out)], [True])
    _, outs, features, *space = rhs.type.shape
    per = outs // groups
    if not batched[0]:
        # (size, groups, per, ...) -> (groups, size, per, ...)
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
    parted = b(Reshape((batch, size, outs, *out.type.shape[2:])), out)
    return BatchOut([permuted(b, parted, [1, 0, *range(2, len(parted.type.shape))])], [True])


RULES: Final[RuleSet] = NO_RULES.extend(
    ConvGeneralDilated,
    array_rules(jvp=bilinear_jvp, transpose=_conv_transpose, batch=_conv_batch),
)
