"""Rules of collectives.

``vmap`` over the axis that a collective names replaces the collective by an operation along the
batch axis: a ``psum`` becomes a sum. Groups of the axis become a batch of axes, each of the size of
a group. ``vmap`` over another axis applies the collective to one more dimension.

The transpose of a collective is the adjoint of its linear map on the values of all devices. For
``psum``, y_i = Σ_j x_j on each device i, so x_j' = Σ_i y_i', a ``psum`` again. Values whose type
says that they are the same on all devices have other primitives (``psum_invariant``, ``pvary``),
which are each other's transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from effax.ir.analysis.dataflow import NONE
from effax.ir.build import Builder
from effax.ir.dtypes import INT32
from effax.ir.indexing import Dim, Indexer, Pick, Span
from effax.ir.prims import (
    Concatenate,
    ConvertElementType,
    Eq,
    Gather,
    Iota,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Slice,
)
from effax.ir.prims import collective as p
from effax.ir.syntax import Atom
from effax.ir.types import array_type
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
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
from effax.transforms.rules.common.arrays import permuted, reshaped, to_front, zeros
from effax.transforms.rules.common.generic_rules import (
    NONLINEAR,
    array_rules,
    first_linear_jvp,
    no_tangent,
)
from effax.transforms.rules.common.linear_operands import only
from effax.transforms.rules.common.pointwise import div, mul, scaled
from effax.transforms.vmap.engine import vmap

C = TypeVar("C", bound=p.Collective)
G = TypeVar("G", bound=p.Gathering)

Own = Callable[[BatchBuilder, C, Atom, bool], BatchOut]
"""Apply a collective along the batch axis, to an operand and whether it is batched."""


def _batch(own: Own[C], wider: Callable[[C], C]) -> BatchRule[C]:
    """Return the batch rule: ``own`` along the named axis, else the collective ``wider(prim)``."""

    def batch(
        b: BatchBuilder, prim: C, ins: Sequence[Atom], batched: Sequence[bool], size: int
    ) -> BatchOut:
        if b.axis != prim.axis.name:
            return BatchOut(b.emit(wider(prim), ins), [True])
        if prim.groups is not None:
            return _in_groups(b, prim, prim.groups, to_front(b, ins[0], batched[0], size))
        return own(b, prim, ins[0], batched[0])

    return batch


def _in_groups(b: BatchBuilder, prim: p.Collective, groups: p.Groups, x: Atom) -> BatchOut:
    """Return the exchange within each group, for groups that are filled up to one size."""
    size, rest = prim.size, x.type.shape[1:]
    # The extreme of a value and itself is the value; the sum of a value and zero.
    filler = [g[0] if isinstance(prim, p.Pmax | p.Pmin) else None for g in groups]
    order = [
        i for g, fill in zip(groups, filler, strict=True) for i in (*g, *[fill] * (size - len(g)))
    ]
    parts = reshaped(b, _taken(b, x, order), (len(groups), size, *rest))
    one = Builder([array_type(rest, x.type.dtype)])
    alone = one.finish(one.emit(prim.within_group(), one.binders))
    flags, name = (True,), prim.axis.name
    group = vmap.cached(alone, flags, size, b.rules, NONE, False, flags, name).jaxpr
    each = vmap.cached(group, flags, len(groups), b.rules).jaxpr
    (out,) = b.inline_jaxpr(each, [parts])
    out = reshaped(b, out, (len(order), *out.type.shape[2:]))
    return BatchOut([_taken(b, out, [order.index(i) for i in range(prim.axis.size)])], [True])


def _same(prim: C) -> C:
    return prim


def _linear(transpose: TransposeRule[C], own: Own[C], wider: Callable[[C], C]) -> Rules[C]:
    """Return the rules of a collective that is linear in its operand."""
    return array_rules(jvp=first_linear_jvp, transpose=transpose, batch=_batch(own, wider))


def _psum_own(b: BatchBuilder, prim: p.AllReduce, x: Atom, batched: bool) -> BatchOut:
    # Σ_j x = n·x for an unbatched x
    return BatchOut([b(ReduceSum((0,)), x) if batched else scaled(b, x, prim.axis.size)], [False])


def _extreme_own(
    reduction: type[ReduceMax | ReduceMin],
    b: BatchBuilder,
    prim: p.AllReduce,
    x: Atom,
    batched: bool,
) -> BatchOut:
    return BatchOut([b(reduction((0,)), x) if batched else x], [False])


def _extreme_jvp(
    b: RuleBuilder, prim: p.AllReduce, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Return the mean of the tangents at the extreme values, as for a reduction."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    weight = b(ConvertElementType(x.type.dtype), b(Eq(), x, y))
    add = p.Psum(prim.axis, groups=prim.groups)
    return JvpOut([y], [div(b, b(add, mul(b, dx, weight)), b(add, weight))])


def _moved(b: BatchBuilder, x: Atom, source: int, target: int) -> Atom:
    """Return the operand with the axis ``source`` moved to ``target``."""
    order = [i for i in range(len(x.type.shape)) if i != source]
    order.insert(target, source)
    return permuted(b, x, order)


def _gather_own(b: BatchBuilder, prim: p.Gathering, x: Atom, batched: bool) -> BatchOut:
    stacked = to_front(b, x, batched, prim.axis.size)
    return BatchOut([_moved(b, stacked, 0, prim.dimension)], [False])


def _scatter_own(b: BatchBuilder, prim: p.ReduceScatter, x: Atom, batched: bool) -> BatchOut:
    total = b(ReduceSum((0,)), x) if batched else scaled(b, x, prim.axis.size)
    return BatchOut([_moved(b, total, prim.dimension, 0)], [True])


def _to_all_own(b: BatchBuilder, prim: p.AllToAll, x: Atom, batched: bool) -> BatchOut:
    stacked = to_front(b, x, batched, prim.axis.size)
    # (source, ..., split, ...) -> (split, ..., source at concat, ...)
    order = [i for i in range(1, len(stacked.type.shape)) if i != prim.split + 1]
    order.insert(prim.concat, 0)
    return BatchOut([permuted(b, stacked, [prim.split + 1, *order])], [True])


def _permute_own(b: BatchBuilder, prim: p.PPermute, x: Atom, batched: bool) -> BatchOut:
    n = prim.axis.size
    if not batched and len(prim.perm) == n:
        return BatchOut([x], [False])
    stacked = to_front(b, x, batched, n)
    if not n:
        return BatchOut([stacked], [True])
    source = {d: s for s, d in prim.perm}
    return BatchOut([_taken(b, stacked, [source.get(d) for d in range(n)])], [True])


def _taken(b: Builder, x: Atom, places: Sequence[int | None]) -> Atom:
    """Return the rows of ``x`` at these places; zeros for None."""
    if list(places) == list(range(x.type.shape[0])):
        return x
    parts = [_run(b, x, first, count) for first, count in _runs(places)]
    return b(Concatenate(0), *parts) if len(parts) > 1 else parts[0]


def _runs(places: Sequence[int | None]) -> list[tuple[int | None, int]]:
    """Return consecutive places as runs (first, count)."""
    runs: list[tuple[int | None, int]] = []
    for s in places:
        first, count = runs[-1] if runs else (None, 0)
        follows = s is None if first is None else s == first + count
        if count and follows:
            runs[-1] = (first, count + 1)
        else:
            runs.append((s, 1))
    return runs


def _run(b: Builder, x: Atom, first: int | None, count: int) -> Atom:
    shape = x.type.shape
    if first is None:
        return zeros(b, array_type((count, *shape[1:]), x.type.dtype))
    rest = len(shape) - 1
    return b(Slice((first, *[0] * rest), (first + count, *shape[1:])), x)


def _vary_own(b: BatchBuilder, prim: p.Pvary, x: Atom, batched: bool) -> BatchOut:
    return BatchOut([x], [batched])


def _index_batch(
    b: BatchBuilder, prim: p.AxisIndex, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    # The rule runs only for the named axis: there is no operand that another axis could batch.
    return BatchOut([b(Iota(INT32, (size,), 0))], [True])


def _psum_transpose(
    b: RuleBuilder, prim: p.Psum, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_i = Σ_j x_j:  x_j' = Σ_i y_i'
    return [b(prim, only(cts))]


def _gather_transpose(
    b: RuleBuilder, prim: p.AllGather, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_i[j] = x_j:  x_j' = Σ_i y_i'[j]
    return [b(p.ReduceScatter(prim.axis, prim.dimension, groups=prim.groups), only(cts))]


def _scatter_transpose(
    b: RuleBuilder, prim: p.ReduceScatter, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_i = Σ_j x_j[i]:  x_j'[i] = y_i'
    return [b(p.AllGather(prim.axis, prim.dimension, groups=prim.groups), only(cts))]


def _to_all_transpose(
    b: RuleBuilder, prim: p.AllToAll, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_i[j] = x_j[i]:  x_j'[i] = y_i'[j]
    return [b(replace(prim, split=prim.concat, concat=prim.split), only(cts))]


def _permute_transpose(
    b: RuleBuilder, prim: p.PPermute, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # y_d = x_s for (s, d) in perm:  x_s' = y_d'
    back = tuple(sorted((d, s) for s, d in prim.perm))
    return [b(p.PPermute(prim.axis, back), only(cts))]


def _shared_sum_transpose(
    b: RuleBuilder, prim: p.PsumInvariant, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.Pvary(prim.axis), only(cts))]


def _shared_gather_transpose(
    b: RuleBuilder,
    prim: p.AllGatherInvariant,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    # y[j] = x_j for a y that is the same on all devices:  x_j' = y'[j]
    ct = only(cts)
    dims: list[Dim] = [Span(0, n) for n in ct.type.shape]
    dims[prim.dimension] = Pick(None)
    return [b(Gather(Indexer(tuple(dims))), ct, b(p.AxisIndex(prim.axis)))]


def _vary_transpose(
    b: RuleBuilder, prim: p.Pvary, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [b(p.PsumInvariant(prim.axis), only(cts))]


def _gather_wider(prim: G) -> G:
    return replace(prim, dimension=prim.dimension + 1)


def _scatter_wider(prim: p.ReduceScatter) -> p.ReduceScatter:
    return replace(prim, dimension=prim.dimension + 1)


def _to_all_wider(prim: p.AllToAll) -> p.AllToAll:
    return replace(prim, split=prim.split + 1, concat=prim.concat + 1)


def _extreme(reduction: type[ReduceMax | ReduceMin]) -> Rules[p.AllReduce]:
    own: Own[p.AllReduce] = partial(_extreme_own, reduction)
    return array_rules(jvp=_extreme_jvp, transpose=NONLINEAR, batch=_batch(own, _same))


RULES: Final[RuleSet] = (
    NO_RULES.extend(p.Psum, _linear(_psum_transpose, _psum_own, _same))
    .extend(p.PsumInvariant, _linear(_shared_sum_transpose, _psum_own, _same))
    .extend(p.AllGatherInvariant, _linear(_shared_gather_transpose, _gather_own, _gather_wider))
    .extend(p.Pmax, _extreme(ReduceMax))
    .extend(p.Pmin, _extreme(ReduceMin))
    .extend(p.AllGather, _linear(_gather_transpose, _gather_own, _gather_wider))
    .extend(p.ReduceScatter, _linear(_scatter_transpose, _scatter_own, _scatter_wider))
    .extend(p.AllToAll, _linear(_to_all_transpose, _to_all_own, _to_all_wider))
    .extend(p.PPermute, _linear(_permute_transpose, _permute_own, _same))
    .extend(p.Pvary, _linear(_vary_transpose, _vary_own, _same))
    .extend(
        p.AxisIndex,
        array_rules(
            jvp=no_tangent, transpose=Unsupported("it has no operands"), batch=_index_batch
        ),
    )
)
