"""Gather and scatter, with JAX's dimension numbers, over indexed reads and updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_shape
from effax.arrays.binding import bind1
from effax.arrays.combining import Combine, combined
from effax.arrays.conversion import as_value
from effax.arrays.index_modes import GatherScatterMode, ModeLike
from effax.arrays.indexing import Selection, integer_positions
from effax.arrays.operators import ops
from effax.arrays.shapes import reshape
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import family
from effax.ir.errors import IllTyped
from effax.ir.indexing import Mode
from effax.ir.prims import Scatter, ScatterAdd, ScatterMax, ScatterMin, ScatterMul
from effax.ir.prims.index import Combining
from effax.ir.types import Shape, array_type
from effax.lax.creation import full
from effax.lax.dimension_numbers import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    Windows,
    check_kind,
    checked,
)

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather", "scatter",
    "scatter_add", "scatter_apply", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_sub",
]  # fmt: skip

Update = Callable[[Array, Selection, Array], Array]
"""Returns an array with a value at a selection."""

_GATHER: Final = {
    "operand": "array or scalar.",
    "start_indices": "integers; the last axis is that of the index vectors.",
    "dimension_numbers": "the axes: a :class:`GatherDimensionNumbers`.",
    "slice_sizes": "sizes of a window, one per axis of ``operand``.",
    "unique_indices": "unused promise.",
    "indices_are_sorted": "unused promise.",
    "mode": 'starts out of bounds: "clip" (default) moves the window inward, "fill" fills it.',
    "fill_value": "by default nan, the least integer, or the greatest unsigned one.",
}

_SCATTER: Final = {
    "operand": "array or scalar.",
    "scatter_indices": "integers; the last axis is that of the index vectors.",
    "updates": "windows, in the dtype of ``operand``.",
    "dimension_numbers": "the axes: a :class:`ScatterDimensionNumbers`.",
    "indices_are_sorted": "unused promise.",
    "unique_indices": "whether no element is written twice.",
    "mode": 'starts out of bounds: "drop" (default) drops the window, "clip" moves it inward.',
}

_UPDATED: Final = "Array of the shape and dtype of ``operand``."


@shared_docs(_GATHER, "Array of windows, of the dtype of ``operand``.")
def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: ModeLike = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return windows of an array, at starts that an array of index vectors contains.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> rows = lax.GatherDimensionNumbers(
    ...     offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    ... )
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    x = as_value(operand, "the operand of gather")
    starts = integer_positions(start_indices, "the indices of gather")
    sizes = plain_shape(slice_sizes, "gather")
    how = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    check_kind("gather", dimension_numbers, GatherDimensionNumbers)
    windows = checked("gather", x.shape, starts.shape, sizes, dimension_numbers)
    if 0 in windows.result:
        return full(windows.result, 0, x.dtype)
    fills = how in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    x, at = _selected(x, starts, windows, Mode.DROP if fills else Mode.CLIP)
    fill = False if how is GatherScatterMode.ONE_HOT else fill_value
    return at.outward(ops.read(x, at, "fill" if fills else "clip", fill))


def _selected(x: Array, starts: Array, windows: Windows, mode: Mode) -> tuple[Array, Selection]:
    """Return the array, with a first axis of size 1 if starts index none, and the windows in it."""
    if windows.mapped:
        return x, windows.selection(starts, mode)
    zeros = full((*windows.batch, 1), 0, starts.dtype)
    return reshape(x, (1, *x.shape)), windows.led().selection(zeros, mode)


def _updated(
    name: str,
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    numbers: ScatterDimensionNumbers,
    mode: ModeLike,
    update: Update,
) -> Array:
    """Return the operand with windows updated."""
    x = as_value(operand, f"the operand of {name}")
    value = as_value(updates, f"the updates of {name}")
    starts = integer_positions(indices, f"the indices of {name}")
    clips = GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP
    check_kind(name, numbers, ScatterDimensionNumbers)
    sizes = _window_sizes(x.shape, value.shape, numbers)
    windows = checked(name, x.shape, starts.shape, sizes, numbers)
    if value.shape != windows.result or value.dtype != x.dtype:
        raise IllTyped(
            f"{name} has updates of the wrong type",
            expected=str(array_type(windows.result, x.dtype)),
            found=str(value.type),
        )
    if 0 in value.shape:
        return x
    led, at = _selected(x, starts, windows, Mode.CLIP if clips else Mode.DROP)
    return reshape(update(led, at, at.inward(value)), x.shape)


def _window_sizes(shape: Shape, updates: Shape, numbers: ScatterDimensionNumbers) -> Shape:
    """Return the sizes of a window; 1 for an axis that the updates lack, or that there is not."""
    inside = [updates[d] if 0 <= d < len(updates) else 1 for d in numbers.update_window_dims]
    feed = iter(inside)
    lacking = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return tuple([1 if d in lacking else next(feed, 1) for d in range(len(shape))])


@shared_docs(_SCATTER, _UPDATED)
def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with windows replaced; one of the updates of an element is kept.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(jnp.zeros(3), jnp.array([[2], [0]]), jnp.array([5.0, 6.0]), elements)
    Array([6., 0., 5.], dtype=float32)
    """
    return _updated("scatter", operand, scatter_indices, updates, dimension_numbers, mode, _written)


def _written(x: Array, at: Selection, value: Array) -> Array:
    return bind1(Scatter(at.indexer), x, value, *at.operands)


def _added(x: Array, at: Selection, value: Array) -> Array:
    return bind1(ScatterAdd(at.indexer), x, value, *at.operands)


@shared_docs(_SCATTER, _UPDATED)
def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with windows added; all updates of an element count.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 6.0]), elements)
    Array([ 1.,  1., 12.], dtype=float32)
    """
    return _updated(
        "scatter_add", operand, scatter_indices, updates, dimension_numbers, mode, _added
    )


@shared_docs(_SCATTER, _UPDATED)
def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with windows subtracted; all updates of an element count.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 6.0]), elements)
    Array([  1.,   1., -10.], dtype=float32)
    """

    def subtracted(x: Array, at: Selection, value: Array) -> Array:
        return _added(x, at, ops.negative(value))

    return _updated(
        "scatter_sub", operand, scatter_indices, updates, dimension_numbers, mode, subtracted
    )


def _combining(combine: Combine, prim: type[Combining] | None, unique: bool) -> Update:
    """Return the update by a primitive, or by a function for dtypes that it does not accept."""

    def update(x: Array, at: Selection, value: Array) -> Array:
        if prim is not None and not unique and family(x.dtype) in prim.accepts:
            return bind1(prim(at.indexer), x, value, *at.operands)
        return combined(x, at, value, combine, unique)

    return update


@shared_docs(_SCATTER, _UPDATED)
def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with windows multiplied; all updates of an element count.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 6.0]), elements)
    Array([ 1.,  1., 30.], dtype=float32)
    """
    how = _combining(ops.multiply, ScatterMul, unique_indices)
    return _updated("scatter_mul", operand, scatter_indices, updates, dimension_numbers, mode, how)


@shared_docs(_SCATTER, _UPDATED)
def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with the lesser of elements and updates; all updates of an element count.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([-5.0, 6.0]), elements)
    Array([ 1.,  1., -5.], dtype=float32)
    """
    how = _combining(ops.minimum, ScatterMin, unique_indices)
    return _updated("scatter_min", operand, scatter_indices, updates, dimension_numbers, mode, how)


@shared_docs(_SCATTER, _UPDATED)
def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with the greater of elements and updates; all updates of an element count.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([-5.0, 6.0]), elements)
    Array([1., 1., 6.], dtype=float32)
    """
    how = _combining(ops.maximum, ScatterMax, unique_indices)
    return _updated("scatter_max", operand, scatter_indices, updates, dimension_numbers, mode, how)


@shared_docs(
    _SCATTER,
    _UPDATED,
    func="elementwise function.",
    update_shape="shape that updates would have.",
)
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ModeLike = None,
) -> Array:
    """Return an array with a function applied to windows, once per occurrence of an element.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes; indices are not integers.
        BadArgument: an unknown mode.

    >>> elements = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(
    ...     jnp.ones(3), jnp.array([[2], [2]]), lambda x: 3 * x, elements, update_shape=(2,)
    ... )
    Array([1., 1., 9.], dtype=float32)
    """
    x = as_value(operand, "the operand of scatter_apply")
    zeros = full(plain_shape(update_shape, "scatter_apply"), 0, x.dtype)
    how = _combining(lambda old, _: func(old), None, unique_indices)
    return _updated("scatter_apply", x, scatter_indices, zeros, dimension_numbers, mode, how)
