"""Batching of indexers: one indexer for all batch elements.

The dynamic start of a span is a scalar, so a batched start becomes picked positions::

    x[i : i + k]  for each i in starts    =    x[clamped(starts)[:, None] + iota(k)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.build import lit
from effax.ir.dtypes import INT32, int_bounds
from effax.ir.indexing import Dim, Indexer, Pick, Span, is_dynamic, layout
from effax.ir.prims import Add, BroadcastInDim, ConvertElementType, Iota, Max, Min, Reshape
from effax.ir.syntax import Atom
from effax.ir.types import Shape
from effax.transforms.framework.rules import RuleBuilder
from effax.transforms.rules.common.arrays import inverse, permuted
from effax.transforms.rules.common.pointwise import scaled

Label = tuple[str, int]
"""An axis of an indexed part: ("batch", 0), ("pick", broadcast axis) or ("span", axis)."""

BATCH: Label = ("batch", 0)


class BatchedIndexer(NamedTuple):
    """A batched indexer, its operands, and the order of the axes of the indexed part.

    Attributes:
        indexer: the indexer, with a first entry for the batch axis of a batched array.
        operands: the operands of the indexer.
        permutation: permutes the axes of the indexed part to (batch, axes of one batch element).
    """

    indexer: Indexer
    operands: tuple[Atom, ...]
    permutation: tuple[int, ...]

    def batch_first(self, b: RuleBuilder, part: Atom) -> Atom:
        """Return an indexed part with its batch axis in front."""
        return permuted(b, part, self.permutation)

    def index_order(self, b: RuleBuilder, value: Atom) -> Atom:
        """Return a value whose batch axis is in front in the order of the indexed part."""
        return permuted(b, value, inverse(self.permutation))


def batched_indexer(
    b: RuleBuilder,
    indexer: Indexer,
    shape: Shape,
    operands: Sequence[Atom],
    batched: Sequence[bool],
    axis: int | None,
) -> BatchedIndexer:
    """Return an indexer for all batch elements.

    Args:
        b: the builder that computes the operands.
        indexer: the indexer of one batch element.
        shape: the shape of one batch element of the indexed array.
        operands: the operands of the indexer.
        batched: which operands have a leading batch axis.
        axis: the size of the leading batch axis of the indexed array; None if unbatched.
    """
    axes: list[Label] = [("span", i) for i in range(len(indexer.dims))]
    shapes = [o.type.shape[has:] for o, has in zip(operands, batched, strict=True)]
    n_picks = len(layout(indexer, shapes).pick_shape)
    picks: list[Label] = [("pick", i) for i in range(n_picks)]
    order = [BATCH, *_labels(indexer, shapes, axes, picks)]
    if axis is not None:
        axes = [BATCH, *axes]
    if True in batched:
        moved = _moving(indexer, batched)
        picks = [BATCH, *picks, *(("span", i) for i in moved)]
        new, made = _picked(b, indexer, shape, operands, batched, axis, n_picks, moved)
    else:
        assert axis is not None
        new, made = Indexer((Span(0, axis), *indexer.dims), indexer.mode), list(operands)
    found = _labels(new, [o.type.shape for o in made], axes, picks)
    return BatchedIndexer(new, tuple(made), tuple(found.index(label) for label in order))


def _labels(
    indexer: Indexer, operands: Sequence[Shape], axes: Sequence[Label], picks: Sequence[Label]
) -> list[Label]:
    """Return the labels of the axes of the indexed part, in order.

    ``axes`` labels the axes of the indexed array, ``picks`` the broadcast axes of the picks.
    """
    position = layout(indexer, operands).position
    spans = [a for a, dim in zip(axes, indexer.dims, strict=True) if isinstance(dim, Span)]
    return [*spans[:position], *picks, *spans[position:]]


def _moving(indexer: Indexer, batched: Sequence[bool]) -> list[int]:
    """Return the axes of spans with a batched start."""
    feed = iter(batched)
    flags = [is_dynamic(dim) and next(feed) for dim in indexer.dims]
    return [
        i
        for i, (dim, has) in enumerate(zip(indexer.dims, flags, strict=True))
        if has and isinstance(dim, Span)
    ]


def _picked(
    b: RuleBuilder,
    indexer: Indexer,
    shape: Shape,
    operands: Sequence[Atom],
    batched: Sequence[bool],
    axis: int | None,
    n_picks: int,
    moved: Sequence[int],
) -> tuple[Indexer, list[Atom]]:
    """Return the indexer for batched operands: the batch axis is a broadcast axis of the picks.

    The broadcast axes are the batch axis, the picks' axes of one batch element, and one axis for
    each span with a batched start.
    """
    rank = 1 + n_picks + len(moved)
    dims: list[Dim] = []
    made: list[Atom] = []
    if axis is not None:
        dims.append(Pick(None))
        made.append(_placed(b, b(Iota(INT32, (axis,), 0)), rank, {0: 0}))
    feed = iter(zip(operands, batched, strict=True))
    for i, dim in enumerate(indexer.dims):
        if not is_dynamic(dim):
            dims.append(dim)
            continue
        operand, has = next(feed)
        if isinstance(dim, Span) and has:
            place = 1 + n_picks + moved.index(i)
            dims.append(Pick(None))
            made.append(_positions(b, operand, dim, shape[i], rank, place))
        else:
            aligned = isinstance(dim, Pick)
            dims.append(dim)
            made.append(_aligned(b, operand, has, n_picks, rank) if aligned else operand)
    return Indexer(tuple(dims), indexer.mode), made


def _aligned(b: RuleBuilder, operand: Atom, batched: bool, n_picks: int, rank: int) -> Atom:
    """Return a pick's operand with its axes aligned to the broadcast axes of the picks."""
    ndim = len(operand.type.shape) - batched
    if not ndim and not batched:
        return operand
    places = {batched + j: 1 + n_picks - ndim + j for j in range(ndim)}
    return _placed(b, operand, rank, {0: 0, **places} if batched else places)


def _placed(b: RuleBuilder, x: Atom, rank: int, places: dict[int, int]) -> Atom:
    """Return ``x`` with its axes at these places of ``rank`` axes, the others of size 1.

    Leading axes of size 1, which broadcasting adds, are omitted.
    """
    first = min(places.values())
    shape = [1] * (rank - first)
    for axis, place in places.items():
        shape[place - first] = x.type.shape[axis]
    return x if tuple(shape) == x.type.shape else b(Reshape(tuple(shape)), x)


def _positions(b: RuleBuilder, start: Atom, span: Span, size: int, rank: int, place: int) -> Atom:
    """Return all positions of a span for each batched start, clamped as an unbatched one."""
    reach = (span.size - 1) * span.step
    first = clamped(b, start, max(0, -reach), max(size - 1 - max(0, reach), 0))
    steps = scaled(b, b(Iota(first.type.dtype, (span.size,), 0)), span.step)
    n = first.type.shape[0]
    shape = tuple(n if i == 0 else span.size if i == place else 1 for i in range(rank))
    return b(
        Add(),
        b(BroadcastInDim(shape, (0,)), first),
        b(BroadcastInDim(shape, (place,)), steps),
    )


def clamped(b: RuleBuilder, index: Atom, low: int, high: int) -> Atom:
    """Return an integer index clamped to ``[low, high]``, signed and of at least 32 bits."""
    if index.type.dtype.itemsize < 4:
        index = b(ConvertElementType(INT32), index)
    least, most = int_bounds(index.type.dtype)
    if high < most:
        index = b(Min(), index, lit(high, index.type))
    if low > least:
        index = b(Max(), index, lit(low, index.type))
    return index if least < 0 else b(ConvertElementType(INT32), index)
