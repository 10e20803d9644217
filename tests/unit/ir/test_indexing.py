"""Indexers against NumPy's own indexing, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effax.ir.errors import BadIndex, IllTyped
from effax.ir.indexing import (
    Dim,
    Indexer,
    Mode,
    Pick,
    Span,
    indexed_shape,
    is_dynamic,
    layout,
    read,
    row,
    whole,
    write,
)
from effax.ir.types import Shape, Type, array_type, ref_type, type_of_value

Value = np.ndarray


def table(shape: Shape, dtype: str = "float32") -> Value:
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


def positions(dim: Dim, size: int, operand: Value | None) -> Value:
    """Return all positions on an axis that an entry means, before any mode applies."""
    if isinstance(dim, Pick):
        return np.asarray(dim.at if operand is None else operand, dtype=np.int64)
    start = dim.start
    if start is None:
        assert operand is not None
        reach = (dim.size - 1) * dim.step
        start = int(np.clip(int(operand), max(0, -reach), size - 1 - max(0, reach)))
    return np.asarray([start + i * dim.step for i in range(dim.size)], np.int64)


Position = tuple[int, ...]


def slow_read(
    indexer: Indexer, x: Value, operands: Sequence[Value]
) -> dict[Position, Position | None]:
    """Return the source of each position of the result; None if it is dropped."""
    feed = iter(operands)
    entries = [
        positions(d, n, next(feed) if is_dynamic(d) else None)
        for d, n in zip(indexer.dims, x.shape, strict=True)
    ]
    place = layout(indexer, [np.shape(o) for o in operands])
    found: dict[Position, Position | None] = {}
    n = len(place.pick_shape)
    for at in np.ndindex(*place.shape):
        pick = at[place.position : place.position + n]
        spans = iter((*at[: place.position], *at[place.position + n :]))
        index = []
        for dim, entry in zip(indexer.dims, entries, strict=True):
            if isinstance(dim, Pick):
                index.append(int(np.broadcast_to(entry, place.pick_shape)[pick]))
            else:
                index.append(int(entry[next(spans)]))
        inside = all(0 <= i < size for i, size in zip(index, x.shape, strict=True))
        if not inside and (indexer.mode is Mode.DROP or 0 in x.shape):
            found[at] = None
        else:
            found[at] = tuple(min(max(i, 0), s - 1) for i, s in zip(index, x.shape, strict=True))
    return found


PICK_SHAPES: list[list[Shape]] = [[()], [(2,)], [(3, 1), (2,), ()], [(0,)]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Indexer, Shape, list[Value]]:
    """Return an indexer, the shape of what it indexes, and operands, some of them out of bounds."""
    n_axes = draw(st.integers(0, 3))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=n_axes, max_size=n_axes)))
    pick_shapes: list[Shape] = draw(st.sampled_from(PICK_SHAPES))
    dims: list[Dim] = []
    operands: list[Value] = []
    for size in shape:
        choice: str = draw(st.sampled_from(["all", "static", "span", "pick", "picks"]))
        step = draw(st.sampled_from([1, 2, -1]))
        length = draw(st.integers(0, 1 + (size - 1) // abs(step) if size else 0))
        reach = max(length - 1, 0) * step
        first = draw(st.integers(0, max(size - 1 - abs(reach), 0))) - min(reach, 0)
        if choice == "all":
            dims.append(Span(0, size))
        elif choice == "static" and size:
            dims.append(Pick(draw(st.integers(0, size - 1))))
        elif choice == "span":
            dynamic = draw(st.booleans())
            dims.append(Span(None if dynamic else first, length, step))
            if dynamic:
                operands.append(np.asarray(draw(st.integers(-9, 9)), np.int32))
        else:
            dims.append(Pick(None))
            pick_shape = draw(st.sampled_from(pick_shapes)) if choice == "picks" else ()
            picked = np.random.default_rng(draw(st.integers(0, 99))).integers(-6, 7, pick_shape)
            operands.append(np.asarray(picked).astype(draw(st.sampled_from(["int8", "int32"]))))
    return Indexer(tuple(dims), draw(st.sampled_from(Mode))), shape, operands


@pytest.mark.slow
@given(cases())
def test_reading_is_reading_each_position(case: tuple[Indexer, Shape, list[Value]]) -> None:
    indexer, shape, operands = case
    x = table(shape)
    found = read(indexer, x, operands)
    wanted = slow_read(indexer, x, operands)
    assert found.shape == indexed_shape(indexer, shape, [type_of_value(o) for o in operands])
    assert found.dtype == x.dtype
    for at, index in wanted.items():
        assert found[at] == (0 if index is None else x[index])


@pytest.mark.slow
@given(cases(), st.booleans())
def test_writing_is_writing_each_position_in_order(
    case: tuple[Indexer, Shape, list[Value]], add: bool
) -> None:
    indexer, shape, operands = case
    x, wanted = table(shape), table(shape)
    value = 100 * table(indexed_shape(indexer, shape, [type_of_value(o) for o in operands]))
    for at, index in slow_read(indexer, x, operands).items():
        if index is not None:
            wanted[index] = wanted[index] + value[at] if add else value[at]
    write(indexer, x, value, operands, np.add if add else None)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.slow
@given(cases())
def test_a_read_returns_a_copy(case: tuple[Indexer, Shape, list[Value]]) -> None:
    indexer, shape, operands = case
    x = table(shape)
    part = read(indexer, x, operands)
    assert not np.shares_memory(part, x)
    assert part.flags.writeable


A = np.s_
STATIC = [
    ((Span(0, 3), Span(0, 4)), A[:, :]),
    ((Pick(1), Span(0, 4)), A[1]),
    ((Span(0, 3), Pick(3)), A[:, 3]),
    ((Pick(2), Pick(0)), A[2, 0]),
    ((Span(1, 2), Span(1, 2, 2)), A[1:3, 1:5:2]),
    ((Span(2, 3, -1), Span(3, 2, -3)), A[::-1, 3::-3]),
    ((Span(0, 0), Span(2, 1)), A[0:0, 2:3]),
]


@pytest.mark.parametrize(("dims", "index"), STATIC, ids=str)
def test_static_entries_are_those_of_numpy(dims: tuple[Dim, ...], index: Any) -> None:
    x = table((3, 4))
    wanted = x[index]
    np.testing.assert_array_equal(read(Indexer(dims), x, []), wanted)
    assert indexed_shape(Indexer(dims), (3, 4), []) == wanted.shape


ROWS, COLUMNS = np.array([[0], [2]]), np.array([3, 0, 3])
ADVANCED = [
    ((Pick(None), Span(0, 4), Span(0, 5)), A[ROWS], [ROWS]),
    ((Span(0, 3), Pick(None), Span(0, 5)), A[:, COLUMNS], [COLUMNS]),
    ((Pick(None), Pick(None), Span(0, 5)), A[ROWS, COLUMNS], [ROWS, COLUMNS]),
    ((Pick(None), Span(0, 4), Pick(None)), A[ROWS, :, COLUMNS], [ROWS, COLUMNS]),
    ((Span(0, 3), Pick(None), Pick(None)), A[:, COLUMNS, COLUMNS], [COLUMNS, COLUMNS]),
    ((Pick(1), Span(1, 2), Pick(None)), A[1, 1:3, COLUMNS], [COLUMNS]),
    ((Span(2, 3, -1), Pick(2), Pick(None)), A[::-1, 2, COLUMNS], [COLUMNS]),
]


@pytest.mark.parametrize(("dims", "index", "operands"), ADVANCED, ids=lambda v: str(v)[:40])
def test_arrays_of_positions_are_laid_out_as_in_numpy(
    dims: tuple[Dim, ...], index: Any, operands: list[Value]
) -> None:
    x = table((3, 4, 5))
    wanted = x[index]
    np.testing.assert_array_equal(read(Indexer(dims), x, operands), wanted)
    value = -table(wanted.shape)
    mine, theirs = x.copy(), x.copy()
    write(Indexer(dims), mine, value, operands)
    theirs[index] = value
    np.testing.assert_array_equal(mine, theirs)
    write(Indexer(dims), mine, value, operands, np.add)
    np.add.at(theirs, index, value)
    np.testing.assert_array_equal(mine, theirs)


FAR = np.array([-1, 0, 2, 3, 99, -128], np.int8)


def test_positions_outside_are_clipped_or_dropped() -> None:
    x = table((3,))
    np.testing.assert_array_equal(read(Indexer((Pick(None),)), x, [FAR]), [1, 1, 3, 3, 3, 1])
    dropped = Indexer((Pick(None),), Mode.DROP)
    np.testing.assert_array_equal(read(dropped, x, [FAR]), [0, 1, 3, 0, 0, 0])
    write(dropped, x, np.full(6, 10, np.float32), [FAR], np.add)
    np.testing.assert_array_equal(x, [11, 2, 13])
    write(dropped, x, np.zeros(6, np.float32), [FAR])
    np.testing.assert_array_equal(x, [0, 2, 0])
    write(Indexer((Pick(None),)), x, np.ones(6, np.float32), [FAR], np.add)
    np.testing.assert_array_equal(x, [3, 2, 3])


def test_a_position_is_outside_where_any_axis_says_so() -> None:
    x = table((2, 2))
    indexer = Indexer((Pick(None), Pick(None)), Mode.DROP)
    i, j = np.array([0, 1, 2, 0]), np.array([0, 5, 0, 1])
    np.testing.assert_array_equal(read(indexer, x, [i, j]), [1, 0, 0, 2])


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int64", "int4"])
def test_indices_of_any_integer_dtype(dtype: str) -> None:
    type_ = ml_dtypes.int4 if dtype == "int4" else np.dtype(dtype)
    at = np.array([0, 1, 7]).astype(type_)
    np.testing.assert_array_equal(read(Indexer((Pick(None),)), table((300,)), [at]), [1, 2, 8])
    np.testing.assert_array_equal(read(Indexer((Pick(None),)), table((2,)), [at]), [1, 2, 2])


def test_the_greatest_unsigned_index_is_not_negative() -> None:
    at = np.array([2**64 - 1], np.uint64)
    np.testing.assert_array_equal(read(Indexer((Pick(None),)), table((3,)), [at]), [3])
    np.testing.assert_array_equal(read(Indexer((Pick(None),), Mode.DROP), table((3,)), [at]), [0])


@pytest.mark.parametrize("mode", Mode)
def test_picks_of_an_empty_axis_drop(mode: Mode) -> None:
    indexer = Indexer((Pick(None), Span(0, 2)), mode)
    x = np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(read(indexer, x, [np.array([0, 1])]), np.zeros((2, 2)))
    write(indexer, x, np.ones((2, 2), np.float32), [np.array([0, 1])], np.add)
    assert read(indexer, x, [np.array([], np.int32)]).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "complex64", "float16", "uint32"])
def test_every_duplicate_is_added(dtype: str) -> None:
    type_ = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.zeros(3, type_)
    write(Indexer((Pick(None),)), x, np.ones(5, type_), [np.array([1, 1, 2, 1, 0])], np.add)
    np.testing.assert_array_equal(x.astype(np.complex64), [1, 3, 1])


def test_of_duplicates_the_last_write_stays() -> None:
    x = table((2,))
    write(Indexer((Pick(None),)), x, table((3,)) * 10, [np.array([0, 0, 0])])
    np.testing.assert_array_equal(x, [30, 2])


def test_a_scalar_is_read_and_written() -> None:
    x = np.asarray(3.0, np.float32)
    assert read(whole(()), x, []) == 3
    write(whole(()), x, np.asarray(2.0, np.float32), [], np.add)
    assert x == 5


@pytest.mark.parametrize(("start", "first"), [(-9, 0), (0, 0), (1, 1), (9, 2)])
def test_a_dynamic_span_moves_inward_until_it_fits(start: int, first: int) -> None:
    x = table((5,))
    at = np.asarray(start, np.int32)
    np.testing.assert_array_equal(read(Indexer((Span(None, 3),)), x, [at]), x[first : first + 3])


@pytest.mark.parametrize(("start", "first"), [(-9, 2), (2, 2), (3, 3), (9, 4)])
def test_a_dynamic_span_downward_does_too(start: int, first: int) -> None:
    x = table((5,))
    found = read(Indexer((Span(None, 2, -2),)), x, [np.asarray(start, np.int32)])
    np.testing.assert_array_equal(found, [x[first], x[first - 2]])


I32, F32 = array_type((), "int32"), array_type((), "float32")
WRONG: list[tuple[Indexer, Shape, list[Type], type[Exception], str]] = [
    (Indexer((Pick(0),)), (3, 4), [], IllTyped, "one entry per axis"),
    (Indexer((Pick(None),)), (3,), [], IllTyped, "number of operands"),
    (Indexer((Pick(0),)), (3,), [I32], IllTyped, "number of operands"),
    (Indexer((Pick(None),)), (3,), [F32], IllTyped, "integers"),
    (Indexer((Pick(None),)), (3,), [ref_type(I32)], IllTyped, "integers"),
    (Indexer((Span(None, 2),)), (3,), [array_type((2,), "int32")], IllTyped, "integer scalar"),
    (Indexer((Pick(3),)), (3,), [], BadIndex, "out of bounds"),
    (Indexer((Pick(-1),)), (3,), [], BadIndex, "out of bounds"),
    (Indexer((Pick(0),)), (0,), [], BadIndex, "out of bounds"),
    (Indexer((Span(1, 3),)), (3,), [], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(-1, 2),)), (3,), [], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(0, 2, -1),)), (3,), [], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(0, 1, 0),)), (3,), [], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(0, -1),)), (3,), [], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(None, 4),)), (3,), [I32], BadIndex, "out of bounds for axis 0"),
    (Indexer((Span(None, 3, -2),)), (4,), [I32], BadIndex, "out of bounds for axis 0"),
    (
        Indexer((Pick(None), Pick(None))),
        (3, 3),
        [array_type((2,), "int32"), array_type((3,), "int32")],
        IllTyped,
        "broadcast",
    ),
]


@pytest.mark.parametrize(("indexer", "shape", "operands", "error", "match"), WRONG)
def test_invalid_indexers_are_errors(
    indexer: Indexer, shape: Shape, operands: list[Type], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        indexed_shape(indexer, shape, operands)


def test_dynamic_spans_downward_fit_where_there_is_room() -> None:
    for size, length, step in product(range(6), range(4), (1, 2, -1, -2)):
        fits = length == 0 or abs(step) * (length - 1) < size
        try:
            indexed_shape(Indexer((Span(None, length, step),)), (size,), [I32])
        except BadIndex:
            assert not fits
        else:
            assert fits


def test_the_common_indexers() -> None:
    assert whole((2, 3)).is_whole((2, 3))
    assert not whole((2, 3)).is_whole((2, 4))
    assert not Indexer((Span(1, 2, -1),)).is_whole((2,))
    assert row((4, 3)).n_operands == 1
    assert row((4, 3), 2) == Indexer((Pick(2), Span(0, 3)))
    assert indexed_shape(row((4, 3)), (4, 3), [I32]) == (3,)
