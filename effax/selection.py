"""From what users write between brackets to indexers: NumPy's rules, for arrays and references."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax import operators as ops
from effax.array import Array, DeviceArray, TracedArray, as_value, from_numpy
from effax.ir.dtypes import family
from effax.ir.errors import BadIndex, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, layout
from effax.ir.types import Shape


class DynamicSlice(NamedTuple):
    """A slice whose start may be traced; its size is static. Made by :func:`ds`."""

    start: object
    size: int


def ds(start: object, size: int) -> DynamicSlice:
    """An index for ``size`` positions from ``start``, which may be traced.

    A start from which the slice would leave the array moves inward, as ``lax.dynamic_slice``'s.
    """
    return DynamicSlice(start, operator.index(size))


class Selection(NamedTuple):
    """What an index means for an array of a certain shape.

    Attributes:
        indexer: one entry an axis.
        operands: its dynamic parts, in order.
        inner: the shape of what the indexer gives.
        shape: ``inner`` with the new axes that ``None`` asks for.
    """

    indexer: Indexer
    operands: tuple[Array, ...]
    inner: Shape
    shape: Shape


def select(shape: Shape, index: object, mode: Mode, strict: bool, name: str) -> Selection:
    """The meaning of ``index`` for an array of this shape.

    Args:
        shape: of what is indexed.
        index: what the user wrote between the brackets.
        mode: what happens to picked positions that are out of bounds and not known now.
        strict: whether index arrays whose values are known must be inside the bounds.
        name: what is indexed, for messages.

    Raises:
        BadIndex: a known position is out of bounds, or there are too many entries.
        IllTyped: an entry is of a type that is no index (a float, a bool, a string, ...).
    """
    entries = _expanded(shape, index if isinstance(index, tuple) else (index,), name)
    dims: list[Dim] = []
    operands: list[Array] = []
    new_axes: list[int] = []
    axis = 0
    for entry in entries:
        if entry is None:
            new_axes.append(len(dims))
            continue
        dim, operand = _entry(entry, shape[axis], axis, shape, strict, name)
        dims.append(dim)
        axis += 1
        if operand is not None:
            operands.append(operand)
    indexer = Indexer(tuple(dims), mode)
    place = layout(indexer, [o.shape for o in operands])
    outer = _with_new_axes(indexer, place.pick_shape, place.position, place.shape, new_axes)
    return Selection(indexer, tuple(operands), place.shape, outer)


def _expanded(shape: Shape, entries: Sequence[object], name: str) -> list[object]:
    """The entries with masks turned into index arrays and an ellipsis filled up."""
    full: list[object] = []
    for entry in entries:
        full.extend(_mask_positions(entry))
    used = sum(e is not None and e is not Ellipsis for e in full)
    if used > len(shape):
        raise BadIndex(
            f"too many indices for {name}",
            expected=f"at most {len(shape)}, for shape {shape}",
            found=str(used),
        )
    dots = [i for i, e in enumerate(full) if e is Ellipsis]
    if len(dots) > 1:
        raise BadIndex(f"more than one ellipsis in an index of {name}", "at most one `...`")
    at = dots[0] if dots else len(full)
    rest = full[at + 1 :]
    return [*full[:at], *[slice(None)] * (len(shape) - used), *rest]


def _mask_positions(entry: object) -> list[object]:
    """A boolean mask as the index arrays of its true positions; its value must be known."""
    if isinstance(entry, list):
        entry = np.asarray(entry)
    boolean = isinstance(entry, np.ndarray | Array) and entry.dtype == np.bool_
    if not boolean or not entry.shape:  # type: ignore[union-attr]  # arrays have a shape
        return [entry]
    mask = entry.numpy() if isinstance(entry, Array) else np.asarray(entry)
    return [from_numpy(p.astype(np.int32)) for p in np.nonzero(mask)]


def _entry(
    entry: object, size: int, axis: int, shape: Shape, strict: bool, name: str
) -> tuple[Dim, Array | None]:
    if isinstance(entry, slice):
        return _slice(entry, size, name), None
    if isinstance(entry, DynamicSlice):
        return _dynamic_slice(entry, size, axis, name)
    if isinstance(entry, bool | np.bool_ | float | complex | str):
        raise _no_index(entry, name)
    if isinstance(entry, int | np.integer):
        return Pick(_position(int(entry), size, axis, shape, name)), None
    if not isinstance(entry, Array | np.ndarray):
        if not hasattr(entry, "__index__"):
            raise _no_index(entry, name)
        return Pick(_position(operator.index(entry), size, axis, shape, name)), None
    index = as_value(entry, "an index")
    if family(index.dtype) not in ("int", "uint"):
        raise _no_index(entry, name)
    if isinstance(index, DeviceArray):
        return _known_pick(index, size, axis, shape, strict, name)
    return Pick(None), _wrapped(index, size)


def _no_index(entry: object, name: str) -> IllTyped:
    return IllTyped(
        f"{name} is indexed with something that is no index",
        expected="an int, a slice, `...`, None, an integer array or a boolean mask",
        found=f"{type(entry).__name__}: {entry!r:.60}",
        remedy="convert it to an int first" if isinstance(entry, float) else None,
    )


def _position(index: int, size: int, axis: int, shape: Shape, name: str) -> int:
    if -size <= index < size:
        return index % size
    raise BadIndex(
        f"index {index} is out of bounds for axis {axis} of {name}",
        expected=f"at least {-size} and less than {size}" if size else "no index: the axis is empty",
        found=f"{index}, for shape {shape}",
    )


def _slice(entry: slice, size: int, name: str) -> Span:
    if any(isinstance(e, TracedArray) for e in (entry.start, entry.stop, entry.step)):
        raise IllTyped(
            f"a slice of {name} has bounds that are traced, so its size is not known",
            expected="static bounds",
            found=str(entry),
            remedy="use `ds(start, size)` or `lax.dynamic_slice`, with a static size",
        )
    start, stop, step = entry.indices(size)
    count = len(range(start, stop, step))
    return Span(start if count else 0, count, step if count else 1)


def _dynamic_slice(
    entry: DynamicSlice, size: int, axis: int, name: str
) -> tuple[Span, Array | None]:
    if not 0 <= entry.size <= size:
        raise BadIndex(
            f"a slice of {name} does not fit axis {axis}",
            expected=f"at most {size}",
            found=str(entry.size),
        )
    start = entry.start
    if isinstance(start, int | np.integer):
        return Span(max(0, min(int(start), size - entry.size)), entry.size), None
    array = as_value(start, "the start of a slice")
    if isinstance(array, DeviceArray) and not array.shape:
        return _dynamic_slice(entry._replace(start=int(array)), size, axis, name)
    return Span(None, entry.size), array


def _known_pick(
    index: DeviceArray, size: int, axis: int, shape: Shape, strict: bool, name: str
) -> tuple[Pick, Array | None]:
    """A pick whose positions are known: negative ones are counted from the end here."""
    values = index.numpy()
    if not values.shape:
        return Pick(_position(int(values), size, axis, shape, name)), None
    if strict and values.size and not (-size <= values.min() and values.max() < size):
        bad = int(values.min() if values.min() < -size else values.max())
        _position(bad, size, axis, shape, name)
    if values.dtype.kind == "u" or not (values < 0).any():
        return Pick(None), index
    return Pick(None), from_numpy(np.where(values < 0, values + size, values).astype(values.dtype))


def _wrapped(index: Array, size: int) -> Array:
    """A traced index with negative positions counted from the end."""
    if family(index.dtype) == "uint":
        return index
    return ops.where(ops.less(index, 0), ops.add(index, size), index)


def _with_new_axes(
    indexer: Indexer, picked: Shape, position: int, inner: Shape, new_axes: Sequence[int]
) -> Shape:
    """The result's shape with an axis of size 1 for each ``None``.

    ``new_axes`` counts the entries before each None. Picks that are not neighbours come first.
    """
    if not new_axes:
        return inner
    dims = indexer.dims
    first = next((i for i, d in enumerate(dims) if isinstance(d, Pick)), len(dims))
    shape = list(inner)
    for before in sorted(new_axes, reverse=True):
        spans = sum(isinstance(d, Span) for d in dims[:before])
        past_picks = len(picked) if before > first or (position == 0 and first < len(dims)) else 0
        shape.insert(spans + past_picks, 1)
    return tuple(shape)
