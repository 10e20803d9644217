"""``ref.at[index]``: a part of a reference, read and written like a reference.

A view has no memory. Its indices are composed at use: ints and slices become one index of the
reference, so that a use accesses the indexed elements only. An index array in a view of a view
works on a copy of that view, which is written back.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, TypeGuard, cast

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.augmented import summand, through
from effax.arrays.conversion import as_value
from effax.arrays.dynamic_span import DynamicSpan, ds
from effax.arrays.indexing import select
from effax.arrays.not_array import NotAnArray
from effax.arrays.operators import ops
from effax.arrays.ref import Ref
from effax.arrays.ref_functions import accumulate, addupdate, get
from effax.effects import Rule
from effax.ir.dtypes import DType
from effax.ir.errors import IllTyped, RefError
from effax.ir.indexing import Mode
from effax.ir.trace import shown_ref
from effax.ir.types import Shape

Chain = tuple[object, ...]
"""Indices, each of the result of the previous one."""


class RefAt:
    """``ref.at``: the views of a reference, by index."""

    __slots__ = ("_chain", "_ref")

    def __init__(self, ref: Ref, chain: Chain = ()) -> None:
        self._ref = ref
        self._chain = chain

    def __getitem__(self, index: object) -> RefView:
        return RefView(self._ref, (*self._chain, index))


class RefView(NotAnArray):
    """A part of a reference: ``view[...]``, ``view[i] = x``, ``view.at[i]``."""

    __slots__ = ("_chain", "ref", "shape")

    def __init__(self, ref: Ref, chain: Chain) -> None:
        shape = ref.shape
        for index in chain:
            shape = select(shape, index, Mode.CLIP, True, "a reference").shape
        self.ref: Ref = ref
        self.shape: Shape = shape
        self._chain = chain

    @classmethod
    def of_shape(cls, ref: Ref, chain: Chain, shape: Shape) -> RefView:
        """Return a view whose shape is known."""
        made = object.__new__(cls)
        made.ref, made.shape, made._chain = ref, shape, chain
        return made

    @property
    def chain(self) -> Chain:
        """Return the indices, each of the result of the previous one."""
        return self._chain

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.ref.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def at(self) -> RefAt:
        """Return the views of this view."""
        return RefAt(self.ref, self._chain)

    def __getitem__(self, index: object) -> Array:
        chain = (*self._chain, index)
        return through(_read(self.ref, chain), self.ref, chain)

    def __setitem__(self, index: object, value: object) -> None:
        chain = (*self._chain, index)
        total = summand(self.ref, chain, value)
        if total is None:
            _write(self.ref, chain, value)
        else:
            # A read is remembered only where the indices compose.
            found = composed_index(self.ref.shape, chain, Mode.DROP)
            accumulate(self.ref, found, total.value, total.negated)

    def get(self, index: object = ...) -> Array:
        """Return ``self[index]``, by default the contents."""
        return self[index]

    def set(self, value: object, index: object = ...) -> None:
        """Replace ``self[index]``, by default the contents."""
        self[index] = value

    def swap(self, value: object, index: object = ...) -> Array:
        """Replace ``self[index]``; return the old elements."""
        old = self[index]
        self[index] = value
        return old

    def addupdate(self, value: object, index: object = ...) -> None:
        """Add ``value`` to ``self[index]`` in place; repeated positions accumulate."""
        _add(self.ref, (*self._chain, index), value)

    def __len__(self) -> int:
        if not self.shape:
            raise IllTyped("len() of a view without axes", found=repr(self))
        return self.shape[0]

    def __repr__(self) -> str:
        return f"RefView(shape={self.shape}, of {self.ref!r})"

    def _not_an_array(self, what: str) -> IllTyped:
        return IllTyped(
            f"{what} is a view of a reference, where an array or a whole reference belongs",
            expected="an array, a number or a reference",
            found=repr(self),
            remedy="read it: `view[...]`; for writes pass the reference and the index, or a "
            "copy: `r = new_ref(view[...])`, and after that `view[...] = r[...]`",
        )

    def _as_array(self, *args: object, **kwargs: object) -> NoReturn:
        raise RefError.against(
            Rule.REF_AS_ARRAY,
            "a view of a reference is used as an array",
            "an array",
            shown_ref(self.ref),
            "read it first: `view[...]`",
        )


def _read(ref: Ref, chain: Chain) -> Array:
    found = composed_index(ref.shape, chain, Mode.CLIP)
    return _read(ref, chain[:-1])[chain[-1]] if found is None else get(ref, found)


def _write(ref: Ref, chain: Chain, value: object) -> None:
    found = composed_index(ref.shape, chain, Mode.DROP)
    if found is None:
        _write(ref, chain[:-1], _read(ref, chain[:-1]).at[chain[-1]].set(cast(ArrayLike, value)))
    else:
        ref[found] = value


def _add(ref: Ref, chain: Chain, value: object) -> None:
    found = composed_index(ref.shape, chain, Mode.DROP)
    if found is None:
        zeros = ops.zeros_like(_read(ref, chain[:-1]))
        _add(ref, chain[:-1], zeros.at[chain[-1]].add(cast(ArrayLike, value)))
    else:
        addupdate(ref, found, value)


Place = int | Array
"""A position; an array of one where it is traced."""


class _Axis(NamedTuple):
    """The selected positions of an axis of the reference: a range, or a single one.

    ``start`` may be traced, if ``step`` is 1; ``size`` is None where the axis is removed.
    """

    start: Place
    size: int | None
    step: int = 1


def composed_index(shape: Shape, chain: Chain, mode: Mode) -> object | None:
    """Return the index that equals a chain of indices; None where none does.

    ``mode`` decides about traced positions out of a view: they are clamped to it, or moved out of
    the reference, where writes are dropped.
    """
    parts = [i for i in chain if i is not Ellipsis and not (type(i) is tuple and not i)]
    if len(parts) <= 1:
        return parts[0] if parts else ...
    axes = [_Axis(0, n) for n in shape]
    part = shape
    for index in parts:
        part = select(part, index, Mode.CLIP, True, "a view of a reference").shape
        narrowed = _narrowed(axes, index if type(index) is tuple else (index,), shape, mode)
        if narrowed is None:
            return None
        axes = narrowed
    return tuple(map(_entry, axes))


def _narrowed(
    axes: Sequence[_Axis], entries: Chain, shape: Shape, mode: Mode
) -> list[_Axis] | None:
    """Return the axes under a further index; None unless it consists of ints and slices."""
    open_axes = [i for i, a in enumerate(axes) if a.size is not None]
    at = next((i for i, e in enumerate(entries) if e is Ellipsis), None)
    if at is not None:
        entries = (
            *entries[:at],
            *[slice(None)] * (len(open_axes) - len(entries) + 1),
            *entries[at + 1 :],
        )
    if not all(e is Ellipsis or _composes(e) for e in entries):
        return None
    result = list(axes)
    for i, entry in zip(open_axes, entries, strict=False):
        found = _step(axes[i], entry, shape[i], mode)
        if found is None:
            return None
        result[i] = found
    return result


def _composes(entry: object) -> bool:
    return isinstance(entry, slice | DynamicSpan) or _is_int(entry) or _is_place(entry)


def _is_place(x: object) -> TypeGuard[Array]:
    return isinstance(x, Array) and not x.shape and x.dtype.kind in "iu"


def _step(axis: _Axis, entry: object, full: int, mode: Mode) -> _Axis | None:
    start, size, step = axis
    assert size is not None
    if isinstance(entry, slice):
        begin, stop, stride = entry.indices(size)
        n = len(range(begin, stop, stride))
        if isinstance(start, Array) and stride != 1:
            return None
        return _Axis(_moved(start, begin, step), n, step * stride)
    if isinstance(entry, DynamicSpan):
        if step != 1 or entry.stride != 1 or not 0 <= entry.size <= size:
            return None
        first = operator.index(entry.start) if _is_int(entry.start) else as_value(entry.start)
        return _Axis(_moved(start, _clamped(first, size - entry.size), 1), entry.size)
    if _is_place(entry):
        place = ops.where(ops.less(entry, 0), ops.add(entry, size), entry)
        moved = _moved(start, _clamped(place, size - 1), step)
        if mode is Mode.CLIP:
            return _Axis(moved, None)
        inside = (place >= 0) & (place < size)
        return _Axis(ops.where(inside, moved, full), None)
    if _is_int(entry):
        return _Axis(_moved(start, operator.index(entry) % size, step), None)
    return None


def _is_int(x: object) -> TypeGuard[int]:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _moved(start: Place, by: Place, step: int) -> Place:
    """Return ``start + by · step``."""
    if isinstance(start, int) and isinstance(by, int):
        return start + by * step
    return ops.add(start, by * step if isinstance(by, int) else ops.multiply(by, step))


def _clamped(place: Place, most: int) -> Place:
    if isinstance(place, int):
        return min(max(place, 0), most)
    return ops.clip(place, 0, most)


def _entry(axis: _Axis) -> object:
    start, size, step = axis
    if size is None:
        return start
    if not isinstance(start, int):
        return ds(start, size)
    if not size:
        return slice(0, 0)
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step)
