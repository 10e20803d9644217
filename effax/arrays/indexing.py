"""From indices as written by users to indexers, by NumPy's rules, for arrays and references."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, SupportsIndex

import numpy as np

from effax.arrays.array import Array
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.device_array import DeviceArray
from effax.arrays.dynamic_span import DynamicSpan
from effax.arrays.operators import ops
from effax.arrays.traced_array import TracedArray, concretization
from effax.ir.analysis.signs import is_nonnegative
from effax.ir.dtypes import INT32, family
from effax.ir.errors import (
    BadIndex,
    BadSlice,
    BooleanIndexError,
    IllTyped,
    InconclusiveDimension,
)
from effax.ir.indexing import Dim, Indexer, Layout, Mode, Pick, Span, layout, pick_shape
from effax.ir.sizes import sliced
from effax.ir.state import cached
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.types import Shape, array_type


class Selection(NamedTuple):
    """An index, resolved for an array of a certain shape.

    Attributes:
        indexer: one entry an axis.
        operands: its dynamic parts, in order.
        order: the permutation of the indexer's axes; None for the identity.
        shape: the shape of the result, with the new axes for ``None``.
    """

    indexer: Indexer
    operands: tuple[Array, ...]
    order: tuple[int, ...] | None
    shape: Shape

    @classmethod
    def of(cls, indexer: Indexer, operands: tuple[Array, ...]) -> Selection:
        """Return the selection of an indexer."""
        place = layout(indexer, [o.shape for o in operands])
        return cls(indexer, operands, None, place.shape)

    @property
    def is_nothing(self) -> bool:
        """Return whether no element is selected, though the indexer has some: ``x[False]``."""
        return 0 in self.shape and 0 not in self.layout.shape

    @property
    def layout(self) -> Layout:
        """Return the shape of the indexer's result, before axes are permuted and added."""
        return layout(self.indexer, [o.shape for o in self.operands])

    def is_distinct(self, shape: Shape) -> bool:
        """Return whether no element of an array of this shape is known to be selected twice."""
        sizes = [n for d, n in zip(self.indexer.dims, shape, strict=True) if d[0] is None]
        found = [(o, n) for o, n in zip(self.operands, sizes, strict=True) if o.shape]
        if not all(isinstance(o, DeviceArray) for o, _ in found):
            return False
        picked = np.ravel_multi_index([o.numpy() for o, _ in found], [n for _, n in found])
        return not found or np.unique(picked).size == picked.size

    def outward(self, part: Array) -> Array:
        """Return the indexer's result with its axes permuted and added."""
        if self.is_nothing:
            return ops.filled(self.shape, 0, array_type((), part.dtype))
        if self.order is not None:
            part = ops.transpose(part, self.order)
        return part if part.shape == self.shape else ops.reshape(part, self.shape)

    def inward(self, value: Array) -> Array:
        """Return a value of the result's shape in the indexer's; the inverse of ``outward``."""
        inner = self.layout.shape
        if self.is_nothing:
            return value
        if self.order is None:
            return value if value.shape == inner else ops.reshape(value, inner)
        permuted = ops.reshape(value, tuple(inner[i] for i in self.order))
        return ops.transpose(permuted, sorted(range(len(inner)), key=self.order.__getitem__))


def select(shape: Shape, index: object, mode: Mode, strict: bool, name: str) -> Selection:
    """Resolve ``index`` for an array of a shape.

    Args:
        shape: the shape of the array.
        index: the index as written by the user.
        mode: the treatment of picked positions out of bounds.
        strict: whether positions whose values are known must be inside the bounds.
        name: the name of the array in messages.

    Raises:
        BadIndex: a known position is out of bounds, or there are too many entries.
        IllTyped: an entry is not an index (a float, a string, ...).
        ConcretizationError: an entry is a traced mask, whose number of true elements is unknown.
    """
    entries = index if type(index) is tuple else (index,)
    if type(index) is list:
        raise IllTyped(
            f"{name} is indexed by a list",
            expected="an array, or a tuple with an entry an axis",
            found=f"{index!r:.60}",
            remedy="convert it: `jnp.array([0, 1])`; a tuple `x[0, 1]` selects one element",
        )
    key, scalars = _key(entries)
    if key is None:
        return _select(shape, entries, mode, strict, name)
    found = _select_keyed(shape, key, mode, strict, name)
    return _with_scalars(found, scalars) if scalars else found


Key = tuple[object, ...]


class _Scalar(Enum):
    """The mark of a traced integer scalar in a key."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"


_ANY_SCALAR = from_numpy(np.zeros((), np.int32))


def _key(entries: tuple[object, ...]) -> tuple[Key | None, list[TracedArray]]:
    """Return the entries as a hashable key, and the traced integers that it omits.

    Return None unless each entry is an int, a slice of ints, an ellipsis, None or a traced integer.
    """
    key: list[object] = []
    scalars: list[TracedArray] = []
    for e in entries:
        kind = type(e)
        if kind is int or e is None or e is Ellipsis:
            key.append(e)
        elif isinstance(e, slice) and _has_plain_bounds(e):
            key.append((e.start, e.stop, e.step))
        elif isinstance(e, TracedArray) and not e.shape and e.dtype.kind in "iu":
            known = not may_be_negative(e)
            key.append(_Scalar.UNSIGNED if known else _Scalar.SIGNED)
            scalars.append(e)
        else:
            return None, scalars
    return tuple(key), scalars


def _has_plain_bounds(e: slice) -> bool:
    return all(bound is None or type(bound) is int for bound in (e.start, e.stop, e.step))


@cached(maxsize=1 << 12)
def _select_keyed(shape: Shape, key: Key, mode: Mode, strict: bool, name: str) -> Selection:
    entries = tuple(slice(*e) if isinstance(e, tuple) else e for e in key)
    return _select(shape, entries, mode, strict, name)


def _with_scalars(found: Selection, scalars: Sequence[TracedArray]) -> Selection:
    """Return the selection with its placeholder operands replaced by traced integers."""
    feed = iter(scalars)
    operands = [
        integer_positions(next(feed), "an index") if o is _ANY_SCALAR else o for o in found.operands
    ]
    return found._replace(operands=tuple(operands))


def _select(
    shape: Shape, entries: tuple[object, ...], mode: Mode, strict: bool, name: str
) -> Selection:
    place = _IndexedArray(shape, mode, strict, name)
    full = _expanded(entries, place)
    dims: list[Dim] = []
    operands: list[Array] = []
    for entry in full:
        if _takes_no_axis(entry):
            continue
        dim, operand = _entry(entry, len(dims), place)
        dims.append(dim)
        if operand is not None:
            operands.append(operand)
    if any(isinstance(e, _Truth) for e in full) and any(isinstance(d, Pick) for d in dims):
        _add_truth(_all_true(full), dims, operands)
    # Static positions are in bounds; one mode for all of them keeps equal programs equal.
    dynamic = any(isinstance(d, Pick) and d.at is None for d in dims)
    indexer = Indexer(tuple(dims), mode if dynamic else Mode.CLIP)
    if any(_takes_no_axis(e) for e in full):
        return _rearranged(indexer, tuple(operands), full)
    return Selection.of(indexer, tuple(operands))


class _Truth(NamedTuple):
    """A mask without axes: a pick along a new axis of size 1, or of size 0 if it is false."""

    value: bool


def _takes_no_axis(entry: object) -> bool:
    return entry is None or entry is Ellipsis or isinstance(entry, _Truth)


def _all_true(entries: Sequence[object]) -> bool:
    return all(e.value for e in entries if isinstance(e, _Truth))


def _add_truth(value: bool, dims: list[Dim], operands: list[Array]) -> None:
    """Broadcast the first pick with the new axis of masks without axes."""
    axis = next(i for i, d in enumerate(dims) if isinstance(d, Pick))
    at = sum(d[0] is None for d in dims[:axis])
    known = dims[axis][0]
    if known is not None:
        operands.insert(at, from_numpy(np.asarray(known, np.int32)))
        dims[axis] = Pick(None)
    operands[at] = ops.broadcast_to(operands[at], pick_shape([operands[at].shape, (int(value),)]))


class _IndexedArray(NamedTuple):
    """The array to index, for checks and messages."""

    shape: Shape
    mode: Mode
    strict: bool
    name: str


def _expanded(entries: Sequence[object], place: _IndexedArray) -> list[object]:
    """Return the entries with masks converted to positions, and slices for missing axes.

    An ellipsis for no axes is kept: it separates picks.
    """
    full: list[object] = []
    for entry in entries:
        full.extend(_mask_positions(entry))
    used = sum(not _takes_no_axis(e) for e in full)
    ndim = len(place.shape)
    if used > ndim:
        raise BadIndex(
            f"too many indices for {place.name}",
            expected=f"at most {ndim}, for shape {place.shape}",
            found=str(used),
        )
    dots = [i for i, e in enumerate(full) if e is Ellipsis]
    if len(dots) > 1:
        raise BadIndex(f"more than one ellipsis in an index of {place.name}", "at most one `...`")
    at = dots[0] if dots else len(full)
    missing: list[object] = [slice(None)] * (ndim - used)
    rest = full[at + 1 :]
    full = [*full[:at], *(missing or ([Ellipsis] if dots else [])), *rest]
    _check_masks(entries, full, place)
    return full


class _MaskPositions(NamedTuple):
    """The positions of a mask's true elements along one of its axes, of size ``size``."""

    positions: np.ndarray
    size: int


def _mask_positions(entry: object) -> list[object]:
    """Return the positions of the true elements of a boolean mask, an entry an axis."""
    if isinstance(entry, bool | np.bool_):
        return [_Truth(bool(entry))]
    if isinstance(entry, list) or type(entry) is tuple:
        entry = _from_sequence(entry)
    if not isinstance(entry, np.ndarray | Array) or entry.dtype != np.bool_:
        return [entry]
    with concretization(BooleanIndexError):
        mask = entry.numpy() if isinstance(entry, Array) else np.asarray(entry)
    if not mask.shape:
        return [_Truth(bool(mask))]
    found = np.nonzero(mask)
    return [_MaskPositions(p.astype(np.int32), n) for p, n in zip(found, mask.shape, strict=True)]


def _from_sequence(entry: Sequence[object]) -> object:
    return ops.asarray(entry) if entry else np.zeros(0, np.int32)


def _check_masks(entries: Sequence[object], full: Sequence[object], place: _IndexedArray) -> None:
    axes = [e for e in full if not _takes_no_axis(e)]
    for axis, (entry, size) in enumerate(zip(axes, place.shape, strict=True)):
        if isinstance(entry, _MaskPositions) and entry.size != size and entry.size:
            raise BadIndex(
                f"a mask does not fit {place.name}",
                expected=f"{size} elements for axis {axis}, of shape {place.shape}",
                found=str(entry.size),
            )


def _spans(entry: object) -> bool:
    return isinstance(entry, slice | DynamicSpan)


def _entry(entry: object, axis: int, place: _IndexedArray) -> tuple[Dim, Array | None]:
    size = place.shape[axis]
    if isinstance(entry, slice):
        return _slice(entry, size, place.name), None
    if isinstance(entry, DynamicSpan):
        return _dynamic_slice(entry, size, axis, place)
    if isinstance(entry, _MaskPositions):
        return Pick(None), from_numpy(entry.positions)
    if isinstance(entry, _Scalar):
        _check_nonempty(axis, place)
        return Pick(None, entry is _Scalar.SIGNED), _ANY_SCALAR
    if isinstance(entry, float | complex | str):
        raise _no_index(entry, place.name)
    if isinstance(entry, int | np.integer):
        return _static_pick(int(entry), axis, place)
    if not isinstance(entry, Array | np.ndarray):
        if not isinstance(entry, SupportsIndex):
            raise _no_index(entry, place.name)
        return _static_pick(operator.index(entry), axis, place)
    index = as_value(entry, "an index")
    if family(index.dtype) not in ("int", "uint"):
        raise _no_index(entry, place.name)
    if index.size:
        _check_nonempty(axis, place)
    if isinstance(index, DeviceArray):
        return _known_pick(index, axis, place)
    return wrapping_pick(index), integer_positions(index, "an index")


def _no_index(entry: object, name: str) -> IllTyped:
    return IllTyped(
        f"{name} has an invalid index",
        expected="an int, a slice, `...`, None, an integer array or a boolean mask",
        found=f"{type(entry).__name__}: {entry!r:.60}",
        remedy="convert it to an int first" if isinstance(entry, float) else None,
    )


def _check_nonempty(axis: int, place: _IndexedArray) -> None:
    """Raise BadIndex for a position along an empty axis, unless the mode drops it."""
    if place.shape[axis] == 0 and place.mode is not Mode.DROP:
        raise _outside("an index", axis, place)


def _outside(what: object, axis: int, place: _IndexedArray) -> BadIndex:
    size = place.shape[axis]
    subject = what if isinstance(what, str) else f"index {what}"
    return BadIndex(
        f"{subject} is out of bounds for axis {axis} of {place.name}",
        expected=f"at least {-size} and less than {size}"
        if size
        else "no index: the axis is empty",
        found=f"{what}, for shape {place.shape}",
    )


def _static_pick(index: int, axis: int, place: _IndexedArray) -> tuple[Pick, Array | None]:
    size = place.shape[axis]
    if -size <= index < size:
        return Pick(index + size if index < 0 else index), None
    if place.strict:
        raise _outside(index, axis, place)
    _check_nonempty(axis, place)
    # Static positions are in bounds, but an operand may be out of bounds.
    at = index + size if index < 0 else index
    return Pick(None), from_numpy(np.asarray(np.clip(at, -(2**31), 2**31 - 1), np.int32))


def _slice(entry: slice, size: int, name: str) -> Span:
    if any(isinstance(e, TracedArray) for e in (entry.start, entry.stop, entry.step)):
        raise BadSlice(
            f"a slice of {name} has bounds that are traced, so its size is not known",
            expected="Array slice indices must have static start/stop/step",
            found=str(entry),
            remedy="use `jax.ds(start, size)` or `lax.dynamic_slice`, with a static size",
        )
    try:
        if any(map(is_symbolic_dim, (size, entry.start, entry.stop))):
            return Span(*sliced(entry, size))
        start, stop, step = entry.indices(size)
    except InconclusiveDimension:
        raise
    except TypeError:
        raise IllTyped(
            f"a slice of {name} has bounds that are not integers", "integers or None", str(entry)
        ) from None
    except ValueError:
        raise BadIndex(f"a slice of {name} has step 0", "a nonzero step", str(entry)) from None
    count = len(range(start, stop, step))
    return Span(start if count else 0, count, step if count else 1)


def _dynamic_slice(
    entry: DynamicSpan, size: int, axis: int, place: _IndexedArray
) -> tuple[Span, Array | None]:
    if not entry.size >= 0 or entry.reach > size:
        raise BadIndex(
            f"a slice of {place.name} does not fit axis {axis}",
            expected=f"at most {size}",
            found=str(entry.reach),
        )
    start = entry.start
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        first = max(0, min(int(start), size - entry.reach))
        return Span(first, entry.size, entry.stride), None
    array = integer_positions(start, "the start of a slice")
    if isinstance(array, DeviceArray) and not array.shape:
        return _dynamic_slice(entry._replace(start=int(array)), size, axis, place)
    return Span(None, entry.size, entry.stride), array


def _known_pick(index: DeviceArray, axis: int, place: _IndexedArray) -> tuple[Pick, Array | None]:
    """Return a pick of known positions; negative ones are counted from the end."""
    size = place.shape[axis]
    values = index.numpy()
    if not values.shape:
        return _static_pick(int(values), axis, place)
    if not values.size:
        return Pick(None), index
    low, high = int(values.min()), int(values.max())
    if place.strict and not (-size <= low and high < size):
        raise _outside(low if low < -size else high, axis, place)
    if low >= 0:
        return Pick(None), index
    wide = values.astype(np.int64)
    kept = np.where(wide < 0, wide + size, wide)
    return Pick(None), from_numpy(kept.astype(INT32 if values.itemsize <= 4 else np.int64))


def integer_positions(x: object, what: str) -> Array:
    """Return positions as an array of integers wide enough for any size. Raises IllTyped."""
    index = as_value(np.asarray(x) if isinstance(x, list | tuple) else x, what)
    if family(index.dtype) not in ("int", "uint"):
        raise IllTyped(f"{what} are not integers", expected="integers", found=str(index.type))
    # A sum of a narrow position and the size of an axis would overflow.
    return ops.astype(index, INT32) if index.dtype.itemsize < 4 else index


def wrapping_pick(index: Array) -> Pick:
    """Return a pick whose negative positions count from the end, unless none is negative."""
    return Pick(None, may_be_negative(index))


def may_be_negative(index: Array) -> bool:
    """Return whether a position may be negative, as far as the program shows."""
    if isinstance(index, DeviceArray):
        return bool((index.numpy() < 0).any())
    return not (isinstance(index, TracedArray) and is_nonnegative(index.owner.builder, index.atom))


class _NewAxis(NamedTuple):
    """An axis of the result that the array lacks."""

    size: int


def _rearranged(indexer: Indexer, operands: tuple[Array, ...], full: Sequence[object]) -> Selection:
    """Return the result's axes for entries that contain ``None``, an ellipsis or a truth value.

    The first two separate picks, whose axes then come first; ``None`` is an axis of size 1.
    """
    place = layout(indexer, [o.shape for o in operands])
    n_picked = len(place.pick_shape)
    picked = list(range(place.position, place.position + n_picked))
    spans = iter([i for i in range(len(place.shape)) if i not in picked])
    picks = [i for i, e in enumerate(full) if not (e is None or e is Ellipsis or _spans(e))]
    apart = bool(picks) and picks[-1] - picks[0] != len(picks) - 1
    # Axes of the result in order: an axis of the indexer's result, or a new one with its size.
    alone = not picked and any(isinstance(e, _Truth) for e in full)
    new = [_NewAxis(int(_all_true(full)))] if alone else []
    axes: list[int | _NewAxis] = [*picked, *new] if apart else []
    for i, entry in enumerate(full):
        if entry is None:
            axes.append(_NewAxis(1))
        elif _spans(entry):
            axes.append(next(spans))
        elif not apart and picks and i == picks[0]:
            axes.extend([*picked, *new])
    order = tuple(a for a in axes if not isinstance(a, _NewAxis))
    shape = tuple(a.size if isinstance(a, _NewAxis) else place.shape[a] for a in axes)
    kept = order == tuple(range(len(order)))
    return Selection(indexer, operands, None if kept else order, shape)
