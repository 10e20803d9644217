"""Functional updates: ``x.at[index].set(value)`` and other methods, as in JAX.

Each returns a new array; in compiled code the update is in place where the old array is not used
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

from effax.arrays.array import Array, ArrayLike
from effax.arrays.assignment import cast_for_update
from effax.arrays.at_indices import traced_mask, traced_truth, unwrapped
from effax.arrays.binding import bind1
from effax.arrays.combining import Combine, combined
from effax.arrays.index_modes import GatherScatterMode, ModeLike
from effax.arrays.indexing import Selection, select
from effax.arrays.operators import ops
from effax.ir.dtypes import family, is_inexact_dtype
from effax.ir.indexing import Indexer, Mode, Span
from effax.ir.primitive import Primitive
from effax.ir.prims import Scatter, ScatterAdd, ScatterMax, ScatterMin, ScatterMul
from effax.ir.prims.index import Combining

_CLIPS = (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


class At:
    """``x.at``: the updates of an array, by index."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: object) -> AtIndex:
        return AtIndex(self._array, index)

    def __repr__(self) -> str:
        return f"At({self._array!r})"


class AtIndex:
    """``x.at[index]``: updates return a new array, ``get`` returns the part.

    ``mode`` decides about positions out of bounds: "drop" (the default of updates) ignores them,
    "clip" clamps them; ``get`` has "fill" as well. The value is converted to the array's dtype,
    with a FutureWarning where that loses its kind or range. ``unique_indices`` asserts that no
    position occurs twice. Without ``wrap_negative_indices``, negative positions are out of bounds.
    """

    __slots__ = ("_array", "_index", "_truth")

    def __init__(self, array: Array, index: object) -> None:
        self._array = array
        self._index, self._truth = traced_truth(index)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        fill_value: ArrayLike | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return ``x[index]``; ``mode`` decides about positions out of bounds."""
        clips = GatherScatterMode.from_any(mode) in _CLIPS
        if self._truth is not None:
            return self._array[(self._truth,)]
        fills = not clips and (mode is not None or fill_value is not None)
        at = self._select(Mode.DROP if fills else Mode.CLIP, wrap_negative_indices)
        return at.outward(ops.read(self._array, at, "fill" if fills else "clip", fill_value))

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with ``values`` at the index."""
        mask = self._traced_mask()
        if mask is not None:
            return self._where(mask, values, lambda old, new: new)
        at = self._update(mode, wrap_negative_indices)
        value = self._cast(at, values)
        return self._scatter(Scatter, at, value)

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with ``values`` added; repeated positions accumulate."""
        if family(self._array.dtype) == "bool":
            how = (unique_indices, mode, wrap_negative_indices)
            return self._combine(values, ops.bitwise_or, how)
        mask = self._traced_mask()
        if mask is not None:
            return self._where(mask, values, ops.add)
        at = self._update(mode, wrap_negative_indices)
        value = self._cast(at, values)
        return self._scatter(ScatterAdd, at, value)

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with ``values`` subtracted; repeated positions accumulate."""
        mask = self._traced_mask()
        if mask is not None:
            return self._where(mask, values, ops.subtract)
        at = self._update(mode, wrap_negative_indices)
        value = ops.negative(self._cast(at, values))
        return self._scatter(ScatterAdd, at, value)

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array multiplied by ``values``; repeated positions accumulate."""
        how = (unique_indices, mode, wrap_negative_indices)
        return self._combine(values, ops.multiply, how, ScatterMul)

    mul = multiply

    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array divided by ``values``; repeated positions accumulate.

        Integers are converted to floats first.
        """
        if not is_inexact_dtype(self._array.dtype):
            self._array = ops.astype(self._array, None)
        how = (unique_indices, mode, wrap_negative_indices)
        return self._combine(values, ops.true_divide, how)

    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array to the power of ``values``; repeated positions accumulate."""
        how = (unique_indices, mode, wrap_negative_indices)
        return self._combine(values, ops.power, how)

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with the lesser of old elements and ``values``."""
        how = (unique_indices, mode, wrap_negative_indices)
        return self._combine(values, ops.minimum, how, ScatterMin)

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with the greater of old elements and ``values``."""
        how = (unique_indices, mode, wrap_negative_indices)
        return self._combine(values, ops.maximum, how, ScatterMax)

    def apply(
        self,
        func: Callable[[Array], Array],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ModeLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Apply an elementwise function once per occurrence of a position."""

        def applied(old: Array, _: Array) -> Array:
            whole = Selection.of(Indexer(tuple(Span(0, n) for n in old.shape)), ())
            return self._cast(whole, func(old))

        return self._combine(0, applied, (unique_indices, mode, wrap_negative_indices))

    def _select(self, mode: Mode, wraps: bool) -> Selection:
        index = self._index if wraps else unwrapped(self._index, mode)
        return select(self._array.shape, index, mode, False, "an array")

    def _update(self, mode: ModeLike, wraps: bool) -> Selection:
        clips = GatherScatterMode.from_any(mode) in _CLIPS
        return self._select(Mode.CLIP if clips else Mode.DROP, wraps)

    def _cast(self, at: Selection, values: ArrayLike) -> Array:
        return cast_for_update(at, self._array.dtype, values, "the array", truncates=True)

    def _traced_mask(self) -> Array | None:
        return traced_mask(self._index, self._array.shape)

    def _scatter(self, prim: Callable[[Indexer], Primitive], at: Selection, value: Array) -> Array:
        if at.is_nothing:
            return self._array
        return self._if_true(bind1(prim(at.indexer), self._array, value, *at.operands))

    def _if_true(self, new: Array) -> Array:
        """Return the update, or the array where a traced boolean of the index is false."""
        return new if self._truth is None else ops.where(self._truth, new, self._array)

    def _where(self, mask: Array, values: ArrayLike, combine: Combine) -> Array:
        """Return the update under a mask, for values whose shape does not depend on the mask."""
        x = self._array
        rest = x.ndim - mask.ndim
        part = Selection.of(Indexer(tuple(Span(0, n) for n in x.shape[mask.ndim :])), ())
        value = ops.broadcast_to(self._cast(part, values), x.shape)
        wide = ops.broadcast_to(ops.reshape(mask, (*mask.shape, *(1,) * rest)), x.shape)
        return ops.where(wide, ops.astype(combine(x, value), x.dtype), x)

    def _combine(
        self,
        values: ArrayLike,
        combine: Combine,
        how: tuple[bool, ModeLike, bool],
        prim: type[Combining] | None = None,
    ) -> Array:
        """Update by an elementwise function, or by a primitive for repeated positions."""
        x = self._array
        unique_indices, mode, wraps = how
        mask = self._traced_mask()
        if mask is not None:
            return self._where(mask, values, combine)
        at = self._update(mode, wraps)
        value = self._cast(at, values)
        if at.is_nothing:
            return x
        return self._if_true(combined(x, at, value, combine, unique_indices, prim))
