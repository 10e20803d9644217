"""Lowering of indexed reads and updates.

Single positions and slices become windows: ``dynamic_slice`` and ``dynamic_update_slice``, which
XLA does in place. Arrays of positions become ``gather`` and ``scatter``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from effax.ir.dtypes import INT32, DType, family
from effax.ir.indexing import Dim, Indexer, Layout, Mode, Pick, Span, is_dynamic, layout
from effax.ir.prims import index as i
from effax.ir.types import ArrayType, Shape, array_type
from effax.lowering import ops
from effax.lowering.writer import NO_RULES, Rule, Val, Writer

Combine = Callable[[Writer, Val, Val], Val]
"""What to store, from the old element and the given one."""


def replaced(w: Writer, old: Val, new: Val) -> Val:
    return new


def combining(name: str, of_booleans: str | None = None) -> Combine:
    """Combine by an operation; booleans may have one of their own."""

    def combine(w: Writer, old: Val, new: Val) -> Val:
        logical = family(old.type.dtype) == "bool"
        return ops.same(w, of_booleans if of_booleans and logical else name, old, new)

    return combine


class Axis(NamedTuple):
    """An entry of an indexer with its operand (in the index dtype) and the axis's size."""

    dim: Dim
    operand: Val | None
    size: int


class Place(NamedTuple):
    """What part of an array is meant, with its operands at hand.

    Attributes:
        axes: one entry an axis.
        layout: the shape of the part, and where the picks' axes are in it.
        dtype: of indices.
        drop: whether picks outside of the bounds count for nothing.
    """

    axes: tuple[Axis, ...]
    layout: Layout
    dtype: DType
    drop: bool

    @property
    def is_window(self) -> bool:
        """Whether each axis has one position or one slice."""
        return not any(_is_array(a) for a in self.axes)

    @property
    def picks(self) -> tuple[int, ...]:
        """The axes that go."""
        return tuple([k for k, a in enumerate(self.axes) if isinstance(a.dim, Pick)])


def _is_array(axis: Axis) -> bool:
    return isinstance(axis.dim, Pick) and axis.operand is not None and axis.operand.shape != ()


def placed(w: Writer, indexer: Indexer, x: Val, operands: Sequence[Val]) -> Place:
    """The indexer's entries with their operands."""
    dtype = ops.index_dtype([o.type for o in operands], x.shape)
    feed = iter([ops.index(w, o, dtype) for o in operands])
    axes = [
        Axis(dim, next(feed) if is_dynamic(dim) else None, n)
        for dim, n in zip(indexer.dims, x.shape, strict=True)
    ]
    shapes = [o.shape for o in operands]
    return Place(tuple(axes), layout(indexer, shapes), dtype, indexer.mode is Mode.DROP)


def gather(w: Writer, prim: i.Gather, ins: Sequence[Val]) -> Sequence[Val]:
    x, *operands = ins
    if prim.indexer.is_whole(x.shape):
        return (x,)
    place = placed(w, prim.indexer, x, operands)
    type_ = x.type.update(shape=place.layout.shape)
    if x.type.size == 0 or type_.size == 0:
        return (w.constant(0, type_),)
    part = _window_read(w, place, x) if place.is_window else _gathered(w, place, x, type_)
    inside = _inside(w, place)
    if inside is None:
        return (part,)
    return (ops.select(w, _beside(w, inside, place.layout), part, ops.full(w, 0, part)),)


def scatter(w: Writer, prim: i.Scatter, ins: Sequence[Val]) -> Sequence[Val]:
    return (_updated(w, prim.indexer, ins, replaced),)


def combining_rule(combine: Combine) -> Rule[i.Combining]:
    """The rule of an update that combines so."""
    return lambda w, prim, ins: (_updated(w, prim.indexer, ins, combine),)


def _updated(w: Writer, indexer: Indexer, ins: Sequence[Val], combine: Combine) -> Val:
    x, value, *operands = ins
    if x.type.size == 0 or value.type.size == 0:
        return x
    if indexer.is_whole(x.shape):
        return combine(w, x, value)
    place = placed(w, indexer, x, operands)
    if place.is_window:
        return _window_write(w, place, x, value, combine)
    return _scattered(w, place, x, value, combine)


def _inside(w: Writer, place: Place) -> Val | None:
    """Whether the picks are inside of the bounds, in their shape, where that is asked."""
    found: Val | None = None
    if place.drop:
        for dim, operand, size in place.axes:
            if isinstance(dim, Pick) and operand is not None:
                low = ops.compare(w, "GE", operand, ops.full(w, 0, operand))
                high = ops.compare(w, "LT", operand, ops.full(w, size, operand))
                here = ops.same(w, "and", low, high)
                here = _to_picks(w, here, place.layout)
                found = here if found is None else ops.same(w, "and", found, here)
    return found


def _to_picks(w: Writer, x: Val, place: Layout) -> Val:
    """An operand of a pick in the shape of all of them."""
    axes = range(len(place.pick_shape) - len(x.shape), len(place.pick_shape))
    return ops.broadcast(w, x, place.pick_shape, axes)


def _beside(w: Writer, x: Val, place: Layout) -> Val:
    """A value a pick in the shape of the whole part; a scalar stays."""
    if not x.shape:
        return x
    axes = range(place.position, place.position + len(place.pick_shape))
    return ops.broadcast(w, x, place.shape, axes)


class Window(NamedTuple):
    """The smallest unbroken box that holds the part."""

    starts: tuple[int | Val, ...]
    sizes: Shape
    steps: tuple[int, ...]

    @property
    def reversed_axes(self) -> list[int]:
        """The axes that run backward."""
        return [k for k, step in enumerate(self.steps) if step < 0]

    @property
    def counts(self) -> Shape:
        """How many positions the part has along each axis."""
        return tuple([-(-n // abs(s)) for n, s in zip(self.sizes, self.steps, strict=True)])


def _window(w: Writer, place: Place) -> Window:
    starts: list[int | Val] = []
    sizes: list[int] = []
    steps: list[int] = []
    for dim, operand, size in place.axes:
        start: int | Val = operand if operand is not None else dim[0] or 0
        if isinstance(dim, Span):
            reach = (dim.size - 1) * dim.step
            starts.append(_lowered(w, start, reach, size) if reach < 0 else start)
            sizes.append(abs(reach) + 1)
            steps.append(dim.step if dim.size > 1 else 1)
        else:
            starts.append(start)
            sizes.append(1)
            steps.append(1)
    return Window(tuple(starts), tuple(sizes), tuple(steps))


def _lowered(w: Writer, start: int | Val, reach: int, size: int) -> int | Val:
    """The least position of a slice that runs backward from ``start`` by ``reach``."""
    if isinstance(start, int):
        return start + reach
    low, high = ops.full(w, -reach, start), ops.full(w, size - 1, start)
    inside = ops.mapped(w, "clamp", start.type, low, start, high)
    return ops.same(w, "add", inside, ops.full(w, reach, start))


def _fixed(window: Window) -> list[int] | None:
    """The starts, where all are known."""
    known = [s for s in window.starts if isinstance(s, int)]
    return known if len(known) == len(window.starts) else None


def _values(w: Writer, window: Window, dtype: DType) -> list[Val]:
    type_ = array_type((), dtype)
    return [w.constant(s, type_) if isinstance(s, int) else s for s in window.starts]


def _window_read(w: Writer, place: Place, x: Val) -> Val:
    window = _window(w, place)
    steps = [abs(s) for s in window.steps]
    low = _fixed(window)
    if low is None:
        x = ops.dynamic_slice(w, x, _values(w, window, place.dtype), window.sizes)
        low = [0] * len(steps)
    high = [a + n for a, n in zip(low, window.sizes, strict=True)]
    part = ops.slice_(w, x, low, high, steps)
    # Backward slices begin at their last position, which a step divides.
    return ops.reshape(w, ops.reverse(w, part, window.reversed_axes), place.layout.shape)


def _window_write(w: Writer, place: Place, x: Val, value: Val, combine: Combine) -> Val:
    window = _window(w, place)
    new = ops.reverse(w, ops.reshape(w, value, window.counts), window.reversed_axes)
    inside = _inside(w, place)
    spread = [abs(s) - 1 for s in window.steps]
    if any(spread):
        zero = w.constant(0, x.type.update(shape=()))
        new = ops.pad(w, new, zero, [(0, 0, n) for n in spread])
    kept = [inside] if inside is not None else []
    kept += _on_steps(w, window)
    starts = _values(w, window, place.dtype)
    if kept or combine is not replaced:
        # XLA updates in place if the window that is read is the one that is written, and its
        # position is not known to be constant when it fuses the two.
        if _fixed(window) is not None:
            starts[0] = ops.same(w, "optimization_barrier", starts[0])
        old = ops.dynamic_slice(w, x, starts, window.sizes)
        new = combine(w, old, new)
        for which in kept:
            new = ops.select(w, which, new, old)
    return ops.dynamic_update_slice(w, x, new, starts)


def _on_steps(w: Writer, window: Window) -> list[Val]:
    """For each axis with gaps: which positions of the window belong to the part."""
    masks: list[Val] = []
    for axis, step in enumerate(window.steps):
        if abs(step) > 1:
            position = ops.iota(w, array_type(window.sizes, INT32), axis)
            offset = ops.same(w, "remainder", position, ops.full(w, abs(step), position))
            masks.append(ops.compare(w, "EQ", offset, ops.full(w, 0, offset)))
    return masks


class Pieces(NamedTuple):
    """The parameters that ``gather`` and ``scatter`` share.

    A slice with steps is as good as an array of positions, so its axis joins those of the picks.

    Attributes:
        positions: integers, on axes of their own and a last axis over ``mapped``.
        mapped: the axes that the positions are of.
        collapsed: the axes of which one position is taken at a time.
        offsets: the axes of the part that run inside of a window.
        sizes: the sizes of a window.
    """

    positions: Val
    mapped: tuple[int, ...]
    collapsed: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: Shape


def _pieces(w: Writer, place: Place, clamped: bool) -> Pieces:
    """The parameters; positions are moved inside where ``clamped`` (or the mode) says so."""
    offsets, batch = _part_axes(place)
    shape = tuple([place.layout.shape[k] for k in batch])
    columns: list[Val] = []
    mapped: list[int] = []
    collapsed: list[int] = []
    sizes: list[int] = []
    spans = _span_positions(place)
    for axis, (dim, operand, size) in enumerate(place.axes):
        if isinstance(dim, Pick):
            where = _pick_position(w, place, axis, clamped and not place.drop)
            axes = [batch.index(k) for k in _pick_axes(place, where)]
        elif dim.step != 1:
            where = _stepped(w, place, axis)
            axes = [batch.index(spans[axis])]
        else:
            sizes.append(dim.size)
            if operand is None and not dim.start:
                continue
            start = place.axes[axis].operand
            where = (
                w.constant(dim.start or 0, array_type((), place.dtype))
                if start is None
                else _clamped(w, start, size - dim.size)
            )
            columns.append(ops.broadcast(w, where, shape, []))
            mapped.append(axis)
            continue
        sizes.append(1)
        collapsed.append(axis)
        mapped.append(axis)
        columns.append(ops.broadcast(w, where, shape, axes))
    ranked = [ops.reshape(w, column, (*shape, 1)) for column in columns]
    index = ops.concatenate(w, ranked, len(shape))
    return Pieces(index, tuple(mapped), tuple(collapsed), tuple(offsets), tuple(sizes))


def _span_positions(place: Place) -> dict[int, int]:
    """For each axis that stays: which axis of the part it is."""
    position, n = place.layout.position, len(place.layout.pick_shape)
    stays = [k for k, a in enumerate(place.axes) if isinstance(a.dim, Span)]
    return {axis: at if at < position else at + n for at, axis in enumerate(stays)}


def _part_axes(place: Place) -> tuple[list[int], list[int]]:
    """The part's axes that run inside of a window, and the others."""
    spans = _span_positions(place)
    offsets = [at for axis, at in spans.items() if place.axes[axis].dim[-1] == 1]
    batch = [k for k in range(len(place.layout.shape)) if k not in offsets]
    return offsets, batch


def _pick_axes(place: Place, where: Val) -> range:
    """The part's axes that belong to the axes of a pick's operand."""
    end = place.layout.position + len(place.layout.pick_shape)
    return range(end - len(where.shape), end)


def _pick_position(w: Writer, place: Place, axis: int, clamped: bool) -> Val:
    dim, operand, size = place.axes[axis]
    if operand is None:
        return w.constant(dim[0] or 0, array_type((), place.dtype))
    return _clamped(w, operand, size - 1) if clamped else operand


def _clamped(w: Writer, x: Val, high: int) -> Val:
    scalar = x.type.update(shape=())
    return ops.mapped(w, "clamp", x.type, w.constant(0, scalar), x, w.constant(high, scalar))


def _stepped(w: Writer, place: Place, axis: int) -> Val:
    """The positions of a slice with steps: ``start + step·(0, 1, ...)``."""
    dim, operand, size = place.axes[axis]
    assert isinstance(dim, Span)
    type_ = array_type((dim.size,), place.dtype)
    count = ops.iota(w, type_, 0)
    offset = ops.same(w, "multiply", count, w.constant(dim.step, type_))
    if operand is None:
        return ops.same(w, "add", offset, w.constant(dim.start or 0, type_))
    reach = (dim.size - 1) * dim.step
    low, high = max(0, -reach), size - 1 - max(0, reach)
    scalar = operand.type
    start = ops.mapped(
        w, "clamp", scalar, w.constant(low, scalar), operand, w.constant(high, scalar)
    )
    return ops.same(w, "add", offset, w.repeat(start, (dim.size,)))


def _gathered(w: Writer, place: Place, x: Val, type_: ArrayType) -> Val:
    # StableHLO's gather moves positions inside by itself.
    pieces = _pieces(w, place, clamped=False)
    numbers = (
        f"offset_dims = {ops.numbers(pieces.offsets)}, "
        f"collapsed_slice_dims = {ops.numbers(pieces.collapsed)}, "
        f"start_index_map = {ops.numbers(pieces.mapped)}, "
        f"index_vector_dim = {len(pieces.positions.shape) - 1}"
    )
    text = (
        f'"stablehlo.gather"({x}, {pieces.positions}) <{{dimension_numbers = '
        f"#stablehlo.gather<{numbers}>, slice_sizes = {ops.array(pieces.sizes)}}}> : "
        f"{ops.signature([x, pieces.positions], type_)}"
    )
    return w.op1(text, type_)


def _scattered(w: Writer, place: Place, x: Val, value: Val, combine: Combine) -> Val:
    # StableHLO's scatter drops what is outside by itself.
    pieces = _pieces(w, place, clamped=True)
    numbers = (
        f"update_window_dims = {ops.numbers(pieces.offsets)}, "
        f"inserted_window_dims = {ops.numbers(pieces.collapsed)}, "
        f"scatter_dims_to_operand_dims = {ops.numbers(pieces.mapped)}, "
        f"index_vector_dim = {len(pieces.positions.shape) - 1}"
    )
    element = x.type.update(shape=())
    body = w.region([element, element], lambda old, new: (combine(w, old, new),))
    text = (
        f'"stablehlo.scatter"({x}, {pieces.positions}, {value}) <{{scatter_dimension_numbers = '
        f"#stablehlo.scatter<{numbers}>}}> ({body}) : "
        f"{ops.signature([x, pieces.positions, value], x.type)}"
    )
    return w.op1(text, x.type)


INDEX: Final = (
    NO_RULES.extend(i.Gather, gather)
    .extend(i.Scatter, scatter)
    .extend(i.ScatterAdd, combining_rule(combining("add")))
    .extend(i.ScatterMul, combining_rule(combining("multiply")))
    .extend(i.ScatterMax, combining_rule(combining("maximum", "or")))
    .extend(i.ScatterMin, combining_rule(combining("minimum", "and")))
)
