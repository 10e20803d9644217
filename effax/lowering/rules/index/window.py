"""Reads and updates of a window: slices at static or dynamic starts."""

from __future__ import annotations

from typing import NamedTuple

from effax.ir.dtypes import INT32, DType
from effax.ir.indexing import Span
from effax.ir.types import Shape, array_type
from effax.lowering import ops
from effax.lowering.rules.index.place import Combine, LoweredIndex, in_bounds, replaced
from effax.lowering.writer import Val, Writer


class Window(NamedTuple):
    """The smallest contiguous box that contains the part."""

    starts: tuple[int | Val, ...]
    sizes: Shape
    steps: tuple[int, ...]

    @property
    def reversed_axes(self) -> list[int]:
        """The axes that run backward."""
        return [k for k, step in enumerate(self.steps) if step < 0]

    @property
    def counts(self) -> Shape:
        """The number of positions of the part along each axis."""
        return tuple([-(-n // abs(s)) for n, s in zip(self.sizes, self.steps, strict=True)])


def _window(w: Writer, place: LoweredIndex) -> Window:
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
    """Return the least position of a slice that runs backward from ``start`` by ``reach``."""
    if isinstance(start, int):
        return start + reach
    inside = ops.clamped(w, start, -reach, size - 1)
    return ops.same(w, "add", inside, ops.full(w, reach, start))


def _fixed(window: Window) -> list[int] | None:
    """Return the starts if all are static."""
    known = [s for s in window.starts if isinstance(s, int)]
    return known if len(known) == len(window.starts) else None


def _values(w: Writer, window: Window, dtype: DType) -> list[Val]:
    type_ = array_type((), dtype)
    return [w.constant(s, type_) if isinstance(s, int) else s for s in window.starts]


def window_read(w: Writer, place: LoweredIndex, x: Val) -> Val:
    window = _window(w, place)
    steps = [abs(s) for s in window.steps]
    low = _fixed(window)
    if low is None:
        x = ops.dynamic_slice(w, x, _values(w, window, place.dtype), window.sizes)
        low = [0] * len(steps)
    high = [a + n for a, n in zip(low, window.sizes, strict=True)]
    part = ops.slice_(w, x, low, high, steps)
    # A backward slice starts at its last position: `reach` is a multiple of the step.
    return ops.reshape(w, ops.reverse(w, part, window.reversed_axes), place.layout.shape)


def window_write(w: Writer, place: LoweredIndex, x: Val, value: Val, combine: Combine) -> Val:
    window = _window(w, place)
    new = ops.reverse(w, ops.reshape(w, value, window.counts), window.reversed_axes)
    inside = in_bounds(w, place)
    gaps = [abs(s) - 1 for s in window.steps]
    if any(gaps):
        zero = w.constant(0, x.type.update(shape=()))
        new = ops.pad(w, new, zero, [(0, 0, n) for n in gaps])
    kept = [inside] if inside is not None else []
    kept += _on_steps(w, window)
    starts = _values(w, window, place.dtype)
    if kept or combine is not replaced:
        # XLA updates in place if it reads and writes one window, at a position that is not
        # constant when it fuses the two: the barrier hides a static position.
        if _fixed(window) is not None:
            starts[0] = ops.same(w, "optimization_barrier", starts[0])
        old = ops.dynamic_slice(w, x, starts, window.sizes)
        new = combine(w, old, new)
        for which in kept:
            new = ops.select(w, which, new, old)
    return ops.dynamic_update_slice(w, x, new, starts)


def _on_steps(w: Writer, window: Window) -> list[Val]:
    """Return, for each axis with a step, the mask of positions that belong to the part."""
    masks: list[Val] = []
    for axis, step in enumerate(window.steps):
        if abs(step) > 1:
            position = ops.iota(w, array_type(window.sizes, INT32), axis)
            offset = ops.same(w, "remainder", position, ops.full(w, abs(step), position))
            masks.append(ops.compare(w, "EQ", offset, ops.full(w, 0, offset)))
    return masks
