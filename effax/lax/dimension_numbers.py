"""Windows of an array at start positions: the dimension numbers of gather and scatter.

A window is an indexed part: its start is a pick, of positions that count from the start where the
window is larger than one element; an axis that no start indexes is a slice::

    windows of sizes (1, w) at starts s  =  x[s[:, 0, None], s[:, 1, None] + iota(w)]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from effax.arrays.array import Array
from effax.arrays.axes import static_int
from effax.arrays.indexing import Selection
from effax.arrays.operators import ops
from effax.arrays.shapes import reshape
from effax.ir.dtypes import INT32
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, layout
from effax.ir.types import Shape
from effax.lax.creation import broadcasted_iota

__all__ = ["GatherDimensionNumbers", "ScatterDimensionNumbers"]


class GatherDimensionNumbers(NamedTuple):
    """The axes of a gather; the last axis of the start indices is that of the index vectors.

    Attributes:
        offset_dims: the axes of the result that run inside a window, ascending.
        collapsed_slice_dims: the axes of the operand on which windows have size 1, and which the
            result lacks, ascending.
        start_index_map: the axis of the operand for each element of an index vector.
        operand_batching_dims: the axes of the operand that pair with axes of the start indices.
        start_indices_batching_dims: those axes of the start indices, in the same order.

    >>> lax.GatherDimensionNumbers((), (0,), (0,)).operand_batching_dims
    ()
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The axes of a scatter; the last axis of the scatter indices is that of the index vectors.

    Attributes:
        update_window_dims: the axes of the updates that run inside a window, ascending.
        inserted_window_dims: the axes of the operand on which windows have size 1, and which the
            updates lack, ascending.
        scatter_dims_to_operand_dims: the axis of the operand for each element of an index vector.
        operand_batching_dims: the axes of the operand that pair with axes of the scatter indices.
        scatter_indices_batching_dims: those axes of the scatter indices, in the same order.

    >>> lax.ScatterDimensionNumbers((), (0,), (0,)).operand_batching_dims
    ()
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


Numbers = GatherDimensionNumbers | ScatterDimensionNumbers

Label = tuple[str, int]
"""An axis of the windows: ("batch", axis of the indices) or ("window", axis of the operand)."""


class Windows(NamedTuple):
    """Windows of an array, with checked numbers.

    Attributes:
        shape: the shape of the array.
        sizes: the sizes of a window.
        batch: the shape of the start indices, without the index vectors.
        offsets: the axes of the windows' array that run inside a window.
        collapsed: the axes of the array, of size 1 in a window, which the windows' array lacks.
        mapped: the axis of the array for each element of an index vector.
        batched: the axis of the indices that pairs with an axis of the array.
    """

    shape: Shape
    sizes: Shape
    batch: Shape
    offsets: tuple[int, ...]
    collapsed: tuple[int, ...]
    mapped: tuple[int, ...]
    batched: dict[int, int]

    @property
    def axes(self) -> list[Label]:
        """The axes of the windows' array."""
        inside = iter(d for d in range(len(self.shape)) if not self.lacks(d))
        outside = iter(range(len(self.batch)))
        rank = len(self.batch) + len(self.offsets)
        return [
            ("window", next(inside)) if i in self.offsets else ("batch", next(outside))
            for i in range(rank)
        ]

    @property
    def result(self) -> Shape:
        """The shape of the windows' array."""
        return tuple([(self.sizes if k == "window" else self.batch)[i] for k, i in self.axes])

    def lacks(self, axis: int) -> bool:
        """Return whether the windows' array lacks an axis of the array."""
        return axis in self.collapsed or axis in self.batched

    def led(self) -> Windows:
        """Return the windows for the array with a new first axis, of size 1, that starts index."""
        return self._replace(
            shape=(1, *self.shape),
            sizes=(1, *self.sizes),
            collapsed=(0, *(d + 1 for d in self.collapsed)),
            mapped=(0,),
            batched={d + 1: along for d, along in self.batched.items()},
        )

    def selection(self, indices: Array, mode: Mode) -> Selection:
        """Return the windows as a selection of the array.

        The picks broadcast over the axes of the indices, and an axis for each window that a start
        moves and that has several elements.
        """
        wide = [d for d in self.mapped if self.sizes[d] != 1]
        dims: list[Dim] = []
        operands: list[Array] = []
        for d in range(len(self.shape)):
            if d in self.mapped:
                column = indices[..., self.mapped.index(d)]
                operands.append(self._positions(column, d, wide, mode))
            elif d in self.batched:
                operands.append(self._counted(self.batched[d], len(wide)))
            static = Pick(0) if d in self.collapsed else Span(0, self.sizes[d])
            dims.append(Pick(None) if d in self.mapped or d in self.batched else static)
        place = layout(Indexer(tuple(dims), mode), [o.shape for o in operands])
        spans: list[Label] = [("window", d) for d, e in enumerate(dims) if isinstance(e, Span)]
        picks: list[Label] = [("batch", i) for i in range(len(self.batch))]
        picks += [("window", d) for d in wide]
        part = [*spans[: place.position], *picks, *spans[place.position :]]
        order = tuple([part.index(label) for label in self.axes if label in part])
        kept = order == tuple(range(len(order)))
        indexer = Indexer(tuple(dims), mode)
        return Selection(indexer, tuple(operands), None if kept else order, self.result)

    def _positions(self, start: Array, axis: int, wide: Sequence[int], mode: Mode) -> Array:
        """Return the positions of the windows along an axis; all are outside if one is."""
        rank = len(self.batch)
        lone = reshape(start, (*self.batch, *(1,) * len(wide)))
        if axis not in wide:
            return lone
        size = self.shape[axis]
        last = size - self.sizes[axis]
        if mode is Mode.CLIP:
            lone = ops.clip(lone, 0, last)
        else:
            inside = ops.bitwise_and(ops.greater_equal(lone, 0), ops.less_equal(lone, last))
            lone = ops.where(inside, lone, size)
        ones = [1] * (rank + len(wide))
        ones[rank + wide.index(axis)] = self.sizes[axis]
        steps = broadcasted_iota(lone.dtype, ones, rank + wide.index(axis))
        return ops.add(lone, steps)

    def _counted(self, axis: int, n_wide: int) -> Array:
        """Return the positions of an axis of the array that pairs with an axis of the indices."""
        ones = [1] * (len(self.batch) + n_wide)
        ones[axis] = self.batch[axis]
        return broadcasted_iota(INT32, ones, axis)


def check_kind(name: str, numbers: object, kind: type[Numbers]) -> None:
    """Raise BadArgument unless the dimension numbers of an operation are of their class."""
    if not isinstance(numbers, kind):
        raise BadArgument(
            f"the dimension numbers of {name} are of another type",
            expected=f"`lax.{kind.__name__}(...)`",
            found=f"{type(numbers).__name__}: {numbers!r:.60}",
        )


def checked(name: str, shape: Shape, starts: Shape, sizes: Shape, numbers: Numbers) -> Windows:
    """Return the windows that dimension numbers describe.

    Args:
        name: the operation, for messages.
        shape: the shape of the operand.
        starts: the shape of the start indices.
        sizes: the sizes of a window.
        numbers: the dimension numbers.

    Raises:
        IllTyped: the numbers are not axes, or contradict the shapes.
    """
    plain = [tuple([static_int(d, f"an axis of {name}") for d in field]) for field in numbers]
    offsets, collapsed, mapped, batching, along = plain
    named = dict(zip(numbers._fields, plain, strict=True))
    if not starts:
        raise IllTyped(f"{name} takes indices with an axis of index vectors", "1 axis", "a scalar")
    rank, n_batch = len(shape), len(starts) - 1
    ranks = (n_batch + len(offsets), rank, rank, rank, n_batch)
    ascends = (True, True, False, True, False)
    for (field, dims), n, ascending in zip(named.items(), ranks, ascends, strict=True):
        _check_axes(name, field, dims, n, ascending)
    a, b, c, d, _ = named
    for first in (b, c):
        if set(named[first]) & set(named[d]):
            raise IllTyped(
                f"{name} names an axis in {first} and {d}",
                expected="distinct axes",
                found=f"{named[first]} and {named[d]}",
            )
    _check_equal(name, f"elements of {c}", "the size of an index vector", len(mapped), starts[-1])
    _check_equal(name, "sizes of a window", "the rank of the operand", len(sizes), rank)
    n_axes = len(offsets) + len(collapsed) + len(batching)
    _check_equal(name, f"axes in {a}, {b} and {d}", "the rank of the operand", n_axes, rank)
    paired = [tuple([shape[i] for i in batching]), tuple([starts[i] for i in along])]
    _check_equal(name, f"sizes of {d}", "those of the indices", *paired)
    for axis, size in enumerate(sizes):
        least = 1 if axis in collapsed else 0
        most = 1 if axis in collapsed or axis in batching else shape[axis]
        _check_size(name, axis, size, least, most if 0 in starts else min(most, shape[axis]))
    batched = dict(zip(batching, along, strict=True))
    return Windows(shape, sizes, starts[:-1], offsets, collapsed, mapped, batched)


def _check_axes(name: str, field: str, dims: Sequence[int], rank: int, ascending: bool) -> None:
    if not all(0 <= d < rank for d in dims):
        raise IllTyped(
            f"{name} names an axis in {field} that there is not",
            expected=f"at least 0 and less than {rank}",
            found=str(dims),
        )
    sorted_ = all(d < e for d, e in pairwise(dims))
    if len(set(dims)) != len(dims) or (ascending and not sorted_):
        raise IllTyped(
            f"{name} has wrong {field}",
            expected="distinct axes, ascending" if ascending else "distinct axes",
            found=str(dims),
        )


def _check_size(name: str, axis: int, size: int, least: int, most: int) -> None:
    if not least <= size <= most:
        raise IllTyped(
            f"{name} has a window of the wrong size along axis {axis} of the operand",
            expected=f"at least {least} and at most {most}",
            found=str(size),
        )


def _check_equal(name: str, first: str, second: str, found: object, expected: object) -> None:
    if found != expected:
        raise IllTyped(f"in {name}, the {first} do not fit {second}", str(expected), str(found))
