"""Indexing by NumPy's rules, against NumPy itself: reads, writes, in-place sums, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import effax
import effax.numpy as jnp
from effax import ref
from effax.arrays.array import Array
from effax.arrays.dynamic_span import ds
from effax.arrays.ref import Ref
from effax.arrays.ref_functions import new_ref
from effax.ir.errors import BadArgument, BadIndex, ConcretizationError, IllTyped
from tests.unit.numpy.tracing import run_traced, traced

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4)


@st.composite
def shapes_and_indices(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape and an index for it, out of everything that NumPy has."""
    shape = draw(SHAPES)
    pick_shape = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3), (0,)]))
    entries: list[Any] = []
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "mask", "none", "stop"]))
        if kind == "stop":
            break
        if kind == "none":
            entries.append(None)
            continue
        if kind == "int":
            entries.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            entries.append(draw(st.slices(size)))
        elif kind == "array":
            smaller = draw(st.sampled_from([pick_shape, pick_shape[1:], ()]))
            low = 0 if draw(st.booleans()) else -size
            dtype = draw(st.sampled_from([np.int32, np.int64, np.int8]))
            entries.append(draw(hnp.arrays(dtype, smaller, elements=st.integers(low, size - 1))))
        else:
            mask = draw(hnp.arrays(np.bool_, shape[axis : axis + 1]))
            if pick_shape not in ((), (1,)):
                mask = mask & False
            entries.append(mask)
        axis += 1
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), Ellipsis)
    truth = st.sampled_from([True, True, False, np.bool_(True), np.array(True), np.array(False)])
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        entries.insert(draw(st.integers(0, len(entries))), draw(truth))
    if len(entries) == 1 and draw(st.booleans()):
        return shape, entries[0]
    return shape, tuple(entries)


def valid(shape: tuple[int, ...], index: Any) -> bool:
    try:
        np.zeros(shape)[index]
    except IndexError:
        return False
    return True


TRUTHS: list[Any] = [
    True,
    np.array(False),
    (True, False),
    (None, True),
    (False, 0),
    (0, True),
    (slice(None), False),
    (True, slice(None), True),
    (..., np.bool_(True)),
    (True, [0, 1]),
    ([0], False),
    ([1, 0], slice(None), True),
    (slice(None), [1, 0], True),
    (slice(None), True, [1, 0]),
    (True, np.array([[0], [1]])),
    (False, np.array([True, False])),
    (0, None, True),
    (None, False, ..., 1),
    (0, 1, True),
]
"""Indices with masks without axes."""


def written(shape: tuple[int, ...], index: Any, value: Any) -> np.ndarray:
    x = contents(shape)
    x[index] = value
    return x


@pytest.mark.parametrize("index", TRUTHS, ids=repr)
def test_masks_without_axes(index: Any) -> None:
    for shape in ((2, 3), (2,), ()):
        x = contents(shape)
        if not valid(shape, index):
            with pytest.raises((BadIndex, IllTyped)):
                jnp.asarray(x)[index]
            continue
        part, after = x[index], written(shape, index, -1)
        reference = new_ref(x)
        for found in (
            jnp.asarray(x)[index],
            reference[index],
            new_ref(np.stack([x, x + 9])).at[0][index],
            jnp.asarray(x).at[index].get(mode="fill"),
            reference.swap(-1, index),
            run_traced(lambda x: x[index], jnp.asarray(x)),
        ):
            assert found.shape == part.shape
            np.testing.assert_array_equal(np.asarray(found), part)
        for found in (
            reference[...],
            jnp.asarray(x).at[index].set(-1),
            jnp.asarray(x).at[index].add(-1 - part),
            jnp.asarray(x).at[index].multiply(0).at[index].subtract(1),
            jnp.asarray(x).at[index].min(-1),
            run_traced(lambda x: x.at[index].set(-1), jnp.asarray(x)),
        ):
            np.testing.assert_array_equal(np.asarray(found), after)


@pytest.mark.parametrize("value", [7.0, np.ones((2, 3)), np.ones((1, 2, 3))], ids=np.shape)
@pytest.mark.parametrize("truth", [True, False])
def test_writes_under_a_traced_mask_without_axes(truth: bool, value: Any) -> None:
    after = written((2, 3), truth, value)
    x, mask = jnp.asarray(contents((2, 3))), jnp.asarray(truth)
    found = effax.jit(lambda x, m: x.at[m].set(value))(x, mask)
    np.testing.assert_array_equal(np.asarray(found), after)
    for reference, write in (
        (new_ref(x), lambda r, m: r.__setitem__(m, value)),
        (new_ref(x), lambda r, m: r.addupdate(value - contents((2, 3)), m)),
    ):
        effax.jit(write)(reference, mask)
        np.testing.assert_array_equal(np.asarray(reference[...]), after)
    with pytest.raises(ConcretizationError):
        effax.jit(lambda x, m: x[m])(x, mask)


def test_writes_of_references_under_traced_masks() -> None:
    reference, mask = new_ref(X), jnp.asarray(X % 2 == 0)
    effax.jit(lambda r, m: r.__setitem__(m, -1.0))(reference, mask)
    np.testing.assert_array_equal(np.asarray(reference[...]), np.where(X % 2 == 0, -1, X))
    rows = np.array([True, False, True])
    effax.jit(lambda r, m: r.addupdate(1.0, m))(reference, jnp.asarray(rows))
    after = np.where(X % 2 == 0, -1, X) + rows[:, None]
    np.testing.assert_array_equal(np.asarray(reference[...]), after)


def contents(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.slow
@settings(max_examples=400)
@given(shapes_and_indices())
def test_reads(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = contents(shape)
    if not valid(shape, index):
        with pytest.raises((BadIndex, IllTyped)):
            new_ref(x)[index]
        return
    wanted = x[index]
    for found in (jnp.asarray(x)[index], new_ref(x)[index]):
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.slow
@settings(max_examples=150)
@given(shapes_and_indices())
def test_reads_when_traced(case: tuple[tuple[int, ...], Any]) -> None:
    """Index arrays are traced too, so their values are not known."""
    shape, index = case
    if not valid(shape, index):
        return
    entries = index if isinstance(index, tuple) else (index,)
    arrays = [e for e in entries if isinstance(e, np.ndarray) and e.dtype != np.bool_]

    def read(x: Array, *given: Array) -> Array:
        feed = iter(given)
        return x[tuple(next(feed) if any(e is a for a in arrays) else e for e in entries)]

    x = contents(shape)
    found = run_traced(read, jnp.asarray(x), *map(jnp.asarray, arrays))
    np.testing.assert_array_equal(found, x[index])


@pytest.mark.slow
@settings(max_examples=300)
@given(shapes_and_indices(), st.data())
def test_writes(case: tuple[tuple[int, ...], Any], data: st.DataObject) -> None:
    shape, index = case
    if not valid(shape, index):
        return
    x = contents(shape)
    part = x[index]
    rest = data.draw(st.integers(0, part.ndim))
    value = -1 - np.arange(np.prod(part.shape[rest:]), dtype=np.float32).reshape(part.shape[rest:])
    reference = new_ref(x)
    before = ref.swap(reference, index, value)
    np.testing.assert_array_equal(np.asarray(before), part)
    if unique(shape, index):
        wanted = x.copy()
        wanted[index] = value
        np.testing.assert_array_equal(np.asarray(reference[...]), wanted)
        np.testing.assert_array_equal(np.asarray(jnp.asarray(x).at[index].set(value)), wanted)


def unique(shape: tuple[int, ...], index: Any) -> bool:
    """Return whether no position is selected twice."""
    chosen = np.arange(np.prod(shape)).reshape(shape)[index]
    return len(np.unique(chosen)) == np.size(chosen)


@pytest.mark.slow
@settings(max_examples=300)
@given(shapes_and_indices())
def test_sums_in_place_count_every_duplicate(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    if not valid(shape, index):
        return
    x = contents(shape)
    value = np.arange(1, 1 + x[index].size, dtype=np.float32).reshape(x[index].shape)
    wanted = x.copy()
    np.add.at(wanted, index, value)
    reference = new_ref(x)
    ref.addupdate(reference, index, value)
    np.testing.assert_array_equal(np.asarray(reference[...]), wanted)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x).at[index].add(value)), wanted)


X = contents((3, 4))


@pytest.mark.parametrize(
    "index",
    [
        (None, [0, 1], None, [1, 2]),
        ([0, 1], None, [1, 2]),
        ([0, 1], ..., [1, 2]),
        (..., [0, 1], None),
        (0, None, [1, 2]),
        (None, 1, ..., None, [[0], [1]]),
        [[0, 2]],
        ([],),
        (np.array([], int), slice(None)),
        (np.array([[True, False, True, False]] * 3),),
        (np.array([True, False, True]), [0, 1]),
        (np.array([True, False, True]), None, 2),
        (slice(5, 1), slice(None, None, -3)),
    ],
    ids=repr,
)
def test_where_new_axes_meet_index_arrays(index: Any) -> None:
    plain = tuple(index) if isinstance(index, list) else index
    np.testing.assert_array_equal(np.asarray(jnp.asarray(X)[plain]), X[plain])


def test_new_axes_between_index_arrays_of_many_axes() -> None:
    x = contents((2, 3, 4))
    one, two = np.array([0, 1, 1]), np.array([2, 0, 3])
    for index in [
        (slice(None), one, None, two),
        (slice(None), one, ..., two),
        (None, one, slice(None), two),
        (one, None, slice(None), two),
        (slice(None), None, one, two),
        (one, slice(None), None, two),
    ]:
        assert np.asarray(jnp.asarray(x)[index]).shape == x[index].shape
        np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[index]), x[index])
        reference = new_ref(x)
        reference[index] = np.zeros(x[index].shape, np.float32)
        wanted = x.copy()
        wanted[index] = 0
        np.testing.assert_array_equal(np.asarray(reference[...]), wanted)


def refs() -> Ref:
    return new_ref(jnp.asarray(X))


@pytest.mark.parametrize(
    ("index", "error", "says"),
    [
        (3, BadIndex, "out of bounds for axis 0"),
        (-4, BadIndex, "at least -3 and less than 3"),
        ((0, 4), BadIndex, "axis 1"),
        (np.array([0, 7]), BadIndex, "index 7"),
        (np.array([-9, 0]), BadIndex, "index -9"),
        ((0, 0, 0), BadIndex, "too many indices"),
        ((..., ...), BadIndex, "more than one ellipsis"),
        (np.array([True, False]), BadIndex, "3 elements for axis 0"),
        (1.7, IllTyped, "float"),
        ("a", IllTyped, "str"),
        (np.array([0.5]), IllTyped, "invalid index"),
        (frozenset(), IllTyped, "frozenset"),
        (slice(0, 1.5), IllTyped, "not integers"),
        (slice(0, 2, 0), BadIndex, "step 0"),
        (ds(0, 5), BadIndex, "does not fit axis 0"),
        (([0, 1], [0, 1, 2]), IllTyped, "do not broadcast"),
    ],
    ids=repr,
)
def test_bad_indices_of_references(index: Any, error: type[Exception], says: str) -> None:
    reference = refs()
    with pytest.raises(error, match=says):
        reference[index]
    with pytest.raises(error, match=says):
        reference[index] = 0.0
    with pytest.raises(error, match=says):
        ref.addupdate(reference, index, 0.0)
    np.testing.assert_array_equal(np.asarray(reference[...]), X)


def test_arrays_clamp_reads_and_drop_writes() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(np.asarray(x[7]), X[2])
    np.testing.assert_array_equal(np.asarray(x[-7]), X[0])
    np.testing.assert_array_equal(np.asarray(x[np.array([9, -9])]), X[[2, 0]])
    np.testing.assert_array_equal(np.asarray(x.at[7].set(0)), X)
    np.testing.assert_array_equal(np.asarray(x.at[-4].add(1)), X)
    wanted = X.copy()
    wanted[1] = 0
    np.testing.assert_array_equal(np.asarray(x.at[np.array([1, 9])].set(0)), wanted)


def test_an_empty_axis_has_no_positions() -> None:
    x = jnp.zeros((0, 3))
    with pytest.raises(BadIndex, match="empty"):
        x[0]
    with pytest.raises(BadIndex, match="empty"):
        x[np.array([0])]
    assert x[np.array([], int)].shape == (0, 3)
    with pytest.raises(BadIndex, match="empty"):
        traced(lambda x, i: x[i], x, jnp.arange(2))


POSITIONS: list[tuple[Any, ...]] = [(0,), (-1,), ([0, 1],), ([[0], [5]],), ([0, -1], 1)]
"""Positions along the empty axis of an array of shape (0, 3)."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["drop", "fill", None, "clip"])
@pytest.mark.parametrize("index", POSITIONS, ids=repr)
def test_positions_along_an_empty_axis(index: tuple[Any, ...], mode: Any) -> None:
    """A mode that drops them leaves updates without effect and reads the fill value."""
    x = jnp.zeros((0, 3))
    drops = mode in ("drop", "fill")
    shape = np.zeros((9, 3))[tuple(map(np.asarray, index))].shape

    def get(x: Array, *index: Any) -> Array:
        return x.at[index].get(mode=mode, fill_value=4 if drops else None)

    for name in ("set", "add", "subtract", "multiply", "min", "max", "power", "divide", "get"):

        def use(x: Array, *index: Any, name: str = name) -> Array:
            return getattr(x.at[index], name)(2.0, mode=mode) if name != "get" else get(x, *index)

        for run in (use, effax.jit(use)):
            if not (drops or (name != "get" and mode is None)):
                with pytest.raises(BadIndex, match="empty"):
                    run(x, *map(jnp.asarray, index))
                continue
            found = run(x, *map(jnp.asarray, index))
            wanted = np.full(shape, 4) if name == "get" else np.zeros((0, 3))
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(np.asarray(found), wanted)


def test_taking_along_an_empty_axis() -> None:
    x, at, rows = jnp.zeros((0, 3)), jnp.array([[0, -1]]), jnp.zeros((2, 3), int)
    untyped: Any = jnp
    for run in (lambda f: f, effax.jit):
        for mode in ("fill", "drop"):
            found = run(lambda x, m=mode: untyped.take(x, at, 0, mode=m, fill_value=4))(x)
            np.testing.assert_array_equal(np.asarray(found), np.full((1, 2, 3), 4))
        for refused in (None, "clip", "wrap"):
            with pytest.raises(BadIndex, match="empty axis"):
                run(lambda x, m=refused: untyped.take(x, at, 0, mode=m))(x)
        found = run(lambda x: untyped.take_along_axis(x, rows, 0, mode="fill", fill_value=4))(x)
        np.testing.assert_array_equal(np.asarray(found), np.full((2, 3), 4))


def test_derivatives_and_batches_of_positions_along_an_empty_axis() -> None:
    x, at = jnp.zeros((0, 3)), jnp.arange(2)
    grad = effax.grad(lambda x: jnp.sum(x.at[at].get(mode="fill", fill_value=0)))(x)
    assert grad.shape == (0, 3)
    part = effax.vmap(lambda i: x.at[i].get(mode="fill", fill_value=4))(at)
    np.testing.assert_array_equal(np.asarray(part), np.full((2, 3), 4))
    assert effax.jit(effax.vmap(lambda i: x.at[i].set(1)))(at).shape == (2, 0, 3)


def test_dynamic_slices_move_inward() -> None:
    x = jnp.asarray(X)
    for start in (-2, 0, 1, 2, 9):
        wanted = X[max(0, min(start, 1)) :][:2]
        np.testing.assert_array_equal(np.asarray(x[ds(start, 2)]), wanted)
        found = run_traced(lambda x, i: x[ds(i, 2), 1:], x, jnp.int32(start))
        np.testing.assert_array_equal(found, wanted[:, 1:])


def test_traced_bounds_of_a_slice_are_refused_with_the_remedy() -> None:
    with pytest.raises(IllTyped, match="ds"):
        traced(lambda x, i: x[i:], jnp.asarray(X), jnp.int32(1))


def test_a_traced_mask_has_no_known_positions() -> None:
    with pytest.raises(ConcretizationError):
        traced(lambda x, m: x[m], jnp.asarray(X), jnp.asarray(X) > 1)


def test_narrow_indices_of_long_axes() -> None:
    x = jnp.arange(300)
    at = np.array([-1, -128, 5], np.int8)
    np.testing.assert_array_equal(np.asarray(x[at]), np.arange(300)[at])
    found = run_traced(lambda x, i: x[i], x, jnp.asarray(at))
    np.testing.assert_array_equal(found, np.arange(300)[at])
    small = np.array([200, 3], np.uint8)
    found = run_traced(lambda x, i: x[i], x, jnp.asarray(small))
    np.testing.assert_array_equal(found, np.arange(300)[small])


def test_static_indices_are_slices_in_programs() -> None:
    names = [e.prim.name for e in traced(lambda x: x[1:, ::-1][0, None], jnp.asarray(X)).eqns]
    assert "gather" not in names


def test_a_scalar_known_index_is_a_position() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(np.asarray(x[jnp.int32(-1)]), X[-1])
    np.testing.assert_array_equal(np.asarray(x[np.int64(1), np.array(2)]), X[1, 2])


def test_a_slice_from_a_dynamic_start_has_a_stride() -> None:
    x = jnp.arange(10)
    assert ds(None) == slice(None)
    assert x[ds(3)].tolist() == [0, 1, 2]
    assert x[ds(1, 3, 4)].tolist() == [1, 5, 9]
    assert effax.jit(lambda i: x[ds(i, 3, 4)])(5).tolist() == [1, 5, 9]  # it is clamped
    ref = new_ref(x)
    effax.jit(lambda ref, i: ref.at[ds(i, 3, 4)].set(0))(ref, 1)
    assert ref[...].tolist() == [0, 0, 2, 3, 4, 0, 6, 7, 8, 0]
    with pytest.raises(BadIndex, match="does not fit"):
        x[ds(0, 4, 4)]
    with pytest.raises(BadArgument, match="stride"):
        ds(0, 4, 0)
