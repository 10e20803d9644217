"""Rules of reductions and cumulative reductions: sums, products, extrema."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    BroadcastInDim,
    Concatenate,
    ConvertElementType,
    Eq,
    Exp,
    Expm1,
    Ge,
    IsFinite,
    Log1p,
    Max,
    Min,
    Pad,
    Reshape,
    Rev,
    Slice,
    StopGradient,
)
from effax.ir.prims.reduce import Cumulative, Reduction
from effax.ir.syntax import Atom
from effax.ir.types import Shape
from effax.transforms.framework.rules import (
    NO_RULES,
    JvpOut,
    JvpRule,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
    TransposeRule,
    Unsupported,
)
from effax.transforms.rules.common.arrays import after_batch, permuted
from effax.transforms.rules.common.generic_rules import (
    NONLINEAR,
    array_rules,
    linear_jvp,
    no_tangent,
)
from effax.transforms.rules.common.linear_operands import only
from effax.transforms.rules.common.pointwise import add, const, div, mul, sub, where
from effax.transforms.rules.compare import extremum_tangent, extremum_weights
from effax.transforms.rules.shape import as_primitive


def _reduced_after(prim: Reduction, size: int) -> Reduction:
    return replace(prim, axes=after_batch(prim.axes))


def _reduction(
    jvp: JvpRule[Reduction], transpose: TransposeRule[Reduction] | Unsupported = NONLINEAR
) -> Rules[Reduction]:
    return array_rules(jvp=jvp, transpose=transpose, batch=as_primitive(_reduced_after))


def _unreduced(b: RuleBuilder, x: Atom, axes: Sequence[int], shape: Shape) -> Atom:
    """Return the result of a reduction, broadcast along the reduced axes."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return b(BroadcastInDim(shape, kept), x)


def _sum_transpose(
    b: RuleBuilder, prim: Reduction, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y = Σ x_i:  x_i' = y'
    return [_unreduced(b, only(cts), prim.axes, ins[0].type.shape)]


def _prod_jvp(
    b: RuleBuilder, prim: Reduction, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate y = Π x_i: dy = Σ_i dx_i · Π_{j<i} x_j · Π_{j>i} x_j.

    There is no division, so both derivatives are exact where elements are zero.
    """
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    flat, d = (_flattened(b, a, prim.axes) for a in (x, dx))
    last = len(flat.type.shape) - 1
    if flat.type.shape[last] == 0:
        return JvpOut([y], [None])
    before, after = ([(0, 0, 0)] * last + [edge] for edge in ((1, -1, 0), (-1, 1, 0)))
    one = const(1, x)
    left = b(Pad(tuple(before)), b(p.CumProd(last), flat), one)
    right = b(Pad(tuple(after)), b(p.CumProd(last, reverse=True), flat), one)
    return JvpOut([y], [b(p.ReduceSum((last,)), mul(b, d, mul(b, left, right)))])


def _flattened(b: RuleBuilder, x: Atom, axes: Sequence[int]) -> Atom:
    """Return the array with these axes merged into one, the last."""
    shape = x.type.shape
    kept = [i for i in range(len(shape)) if i not in axes]
    x = permuted(b, x, [*kept, *axes])
    if len(axes) == 1:
        return x
    return b(Reshape((*(shape[i] for i in kept), math.prod(shape[i] for i in axes))), x)


def _extremum_jvp(
    b: RuleBuilder, prim: Reduction, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return the mean of the tangents at the positions of the extreme element.

    It is nan if no element equals the result: beside nan, and if XLA computes the elements again
    for the comparison, rounded otherwise.
    """
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    there = b(Eq(), x, _unreduced(b, y, prim.axes, x.type.shape))
    total = b(p.ReduceSum(prim.axes), b(ConvertElementType(x.type.dtype), there))
    none = b(Eq(), total, const(0, total))
    there = b(p.Or(), there, _unreduced(b, none, prim.axes, x.type.shape))
    shared = b(p.ReduceSum(prim.axes), where(b, there, dx, const(0, dx)))
    return JvpOut([y], [div(b, shared, where(b, none, const(math.nan, total), total))])


def _cumulative_after(prim: Cumulative, size: int) -> Cumulative:
    return replace(prim, axis=prim.axis + 1)


def _cumulative(
    jvp: JvpRule[Cumulative], transpose: TransposeRule[Cumulative] | Unsupported = NONLINEAR
) -> Rules[Cumulative]:
    return array_rules(jvp=jvp, transpose=transpose, batch=as_primitive(_cumulative_after))


def _cumsum_transpose(
    b: RuleBuilder, prim: Cumulative, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_i = Σ_{j<=i} x_j:  x_j' = Σ_{i>=j} y_i', the sum in the other direction
    return [b(replace(prim, reverse=not prim.reverse), only(cts))]


Dual = tuple[Atom, Atom]
"""A value and its tangent."""

Combine = Callable[[RuleBuilder, Dual, Dual], Dual]


def _times(b: RuleBuilder, left: Dual, right: Dual) -> Dual:
    # d(x·y) = dx·y + x·dy
    (x, dx), (y, dy) = left, right
    return mul(b, x, y), add(b, mul(b, dx, y), mul(b, dy, x))


def _extreme(prim: Primitive, b: RuleBuilder, left: Dual, right: Dual) -> Dual:
    (x, dx), (y, dy) = left, right
    return b(prim, x, y), extremum_tangent(b, prim, x, y, dx, dy)


def _log_sum(b: RuleBuilder, left: Dual, right: Dual) -> Dual:
    """Return z = log(exp(x) + exp(y)) and dz = exp(x - z)·dx + exp(y - z)·dy, smooth at x = y.

    If the greater operand is infinite, the differences are nan: then z is that operand, and
    operands that are equal to it share the tangent.
    """
    (x, dx), (y, dy) = left, right
    in_order = b(Ge(), x, y)
    high, low = where(b, in_order, x, y), where(b, in_order, y, x)
    finite = b(IsFinite(), high)
    high, low, safe_x, safe_y = (where(b, finite, a, const(0, a)) for a in (high, low, x, y))
    top = b(StopGradient(), high)
    fine = b(Log1p(), add(b, b(Expm1(), sub(b, high, top)), b(Exp(), sub(b, low, top))))
    total = add(b, top, fine)
    extreme = b(Max(), x, y)
    shares = extremum_weights(b, Max(), x, y)
    in_x, in_y = (
        where(b, finite, b(Exp(), sub(b, a, total)), share)
        for a, share in zip((safe_x, safe_y), shares, strict=True)
    )
    return where(b, finite, total, extreme), add(b, mul(b, dx, in_x), mul(b, dy, in_y))


def _running_jvp(
    combine: Combine,
    b: RuleBuilder,
    prim: Cumulative,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Differentiate by combining pairs (x, dx) in a tree: no division, logarithmic depth."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    pair = (x, dx)
    if prim.reverse:
        pair = _each(b, Rev((prim.axis,)), pair)
    _, dy = running_tree(b, combine, pair, prim.axis)
    return JvpOut([y], [b(Rev((prim.axis,)), dy) if prim.reverse else dy])


def running_tree(b: RuleBuilder, combine: Combine, x: Dual, axis: int) -> Dual:
    """Return the inclusive scan of an associative operation, in O(log n) steps.

    y[1::2] = scan(x[0::2] · x[1::2]);   y[0] = x[0];   y[2::2] = y[1::2] · x[2::2]

    Source: Blelloch 1990, Prefix sums and their applications.
    """
    n = x[0].type.shape[axis]
    if n < 2:
        return x
    pairs = combine(b, _strided(b, x, axis, 0, n - 1), _strided(b, x, axis, 1, n))
    odd = running_tree(b, combine, pairs, axis)
    even = _strided(b, x, axis, 0, 1)
    if n > 2:
        before = _strided(b, odd, axis, 0, (n - 1) // 2, 1)
        rest = combine(b, before, _strided(b, x, axis, 2, n))
        even = (
            b(Concatenate(axis), even[0], rest[0]),
            b(Concatenate(axis), even[1], rest[1]),
        )
    return _interleaved(b, even[0], odd[0], axis), _interleaved(b, even[1], odd[1], axis)


def _each(b: RuleBuilder, prim: Primitive, x: Dual) -> Dual:
    return b(prim, x[0]), b(prim, x[1])


def _strided(b: RuleBuilder, x: Dual, axis: int, start: int, stop: int, stride: int = 2) -> Dual:
    """Return ``x[start:stop:stride]`` along the axis."""
    shape = x[0].type.shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, stop, stride
    return _each(b, Slice(tuple(starts), tuple(limits), tuple(strides)), x)


def _interleaved(b: RuleBuilder, even: Atom, odd: Atom, axis: int) -> Atom:
    """Return the elements of both, alternating: each is padded with zeros, then they are added."""
    more = even.type.shape[axis] - odd.type.shape[axis]
    padded = []
    for x, edges in ((even, (0, 1 - more, 1)), (odd, (1, more, 1))):
        config = [(0, 0, 0)] * len(x.type.shape)
        config[axis] = edges
        padded.append(b(Pad(tuple(config)), x, const(0, x)))
    return add(b, *padded)


RULES: Final[RuleSet] = (
    NO_RULES.extend(p.ReduceSum, _reduction(linear_jvp, _sum_transpose))
    .extend(p.ReduceProd, _reduction(_prod_jvp))
    .extend(p.ReduceMax, _reduction(_extremum_jvp))
    .extend(p.ReduceMin, _reduction(_extremum_jvp))
    .extend(p.ReduceAnd, _reduction(no_tangent))
    .extend(p.ReduceOr, _reduction(no_tangent))
    .extend(p.CumSum, _cumulative(linear_jvp, _cumsum_transpose))
    .extend(p.CumProd, _cumulative(partial(_running_jvp, _times)))
    .extend(p.CumMax, _cumulative(partial(_running_jvp, partial(_extreme, Max()))))
    .extend(p.CumMin, _cumulative(partial(_running_jvp, partial(_extreme, Min()))))
    .extend(p.CumLogSumExp, _cumulative(partial(_running_jvp, _log_sum)))
)
