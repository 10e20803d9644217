"""References outside of every trace: memory that is read and written immediately."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import ref
from effax.arrays.array import Array
from effax.arrays.ref import EagerRef, Ref
from effax.arrays.ref_functions import empty_ref, free_ref, freeze, new_ref
from effax.ir.errors import BadArgument, IllTyped, RefError


def contents(reference: Ref) -> list[Any]:
    return np.asarray(reference[...]).tolist()  # type: ignore[no-any-return]  # NumPy says Any


def test_a_read_returns_the_last_write() -> None:
    r = new_ref(jnp.zeros(3))
    r[1] += 1.0
    r[2] = 5
    assert contents(r) == [0, 1, 5]
    r[...] = jnp.arange(3.0)
    assert contents(r) == [0, 1, 2]
    r[:2] = r[1:]
    assert contents(r) == [1, 2, 2]


def test_scalars() -> None:
    r = new_ref(0.0)
    r[...] = 2.5
    r[()] = r[()] * 2
    assert float(r[...]) == 5
    assert r.shape == ()
    assert r[...].dtype == jnp.float32


def test_a_read_is_a_value_that_later_writes_do_not_change() -> None:
    r = new_ref(jnp.arange(3))
    whole, part, one = r[...], r[1:], r[0]
    r[...] = 9
    assert np.asarray(whole).tolist() == [0, 1, 2]
    assert np.asarray(part).tolist() == [1, 2]
    assert int(one) == 0


def test_the_initial_value_is_copied() -> None:
    value = np.zeros(2, np.float32)
    r = new_ref(value)
    value[0] = 7
    assert contents(r) == [0, 0]
    array = jnp.zeros(2)
    r = new_ref(array)
    r[0] = 7
    assert np.asarray(array).tolist() == [0, 0]


def test_swap_returns_the_previous_value() -> None:
    r = new_ref(jnp.arange(4.0))
    assert np.asarray(ref.swap(r, slice(0, 2), 9.0)).tolist() == [0, 1]
    assert contents(r) == [9, 9, 2, 3]
    assert np.asarray(r.swap(jnp.zeros(4))).tolist() == [9, 9, 2, 3]


def test_addupdate_counts_every_duplicate() -> None:
    r = new_ref(jnp.zeros(3))
    ref.addupdate(r, np.array([0, 2, 0]), np.array([1, 2, 4], np.float32))
    assert contents(r) == [5, 0, 2]
    r.addupdate(1.0)
    assert contents(r) == [6, 1, 3]
    r.addupdate(10.0, 1)
    assert contents(r) == [6, 11, 3]


def test_get_set_and_methods() -> None:
    r = Ref(jnp.ones(2))
    r.set(3)
    assert np.asarray(r.get()).tolist() == [3, 3]
    assert np.asarray(ref.get(r, 0)).tolist() == 3
    assert (r.ndim, r.size, len(r)) == (1, 2, 2)
    assert r.dtype == jnp.float32
    assert isinstance(r, EagerRef)
    assert str(r.aval) == "Ref{f32[2]}"


def test_repr() -> None:
    assert repr(new_ref(jnp.zeros(3))) == "Ref([0., 0., 0.], dtype=float32)"
    assert repr(new_ref(45)).startswith("Ref(45, dtype=int32")


def test_dtypes_follow_the_initial_value_and_are_strong() -> None:
    assert new_ref(1).dtype == jnp.int32
    assert new_ref(1.5).dtype == jnp.float32
    assert Ref(1, jnp.float16).dtype == jnp.float16
    assert not new_ref(1.0)[...].weak_type


def test_empty_ref() -> None:
    r = empty_ref((2, 3))
    assert r.shape == (2, 3)
    assert r.dtype == jnp.float32
    r[...] = 1
    assert contents(r) == [[1, 1, 1]] * 2


@pytest.mark.parametrize(
    "like",
    [effax.ShapeDtypeStruct((2, 3), "int8"), jnp.zeros((2, 3), "int8"), np.zeros((2, 3), np.int8)],
    ids=lambda like: type(like).__name__,
)
def test_empty_ref_of_a_type(like: Any) -> None:
    for run in (lambda f: f, effax.jit):
        assert run(lambda: (empty_ref(like)[...] * 0,))()[0].dtype == jnp.int8
    assert empty_ref(like).shape == (2, 3)
    assert empty_ref(like, "float16").dtype == jnp.float16
    assert empty_ref(3).shape == empty_ref(np.int64(3)).shape == (3,)
    with pytest.raises(RefError):
        empty_ref(new_ref(1.0))


METHODS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "get": (lambda r, i: r.get(i), lambda x, i: x[i].copy()),
    "set": (lambda r, i: r.set(7, i), lambda x, i: x.__setitem__(i, 7)),
    "swap": (lambda r, i: r.swap(7, i), lambda x, i: (x[i].copy(), x.__setitem__(i, 7))[0]),
    "addupdate": (lambda r, i: r.addupdate(7, i), lambda x, i: np.add.at(x, i, 7)),
    "ref.set": (lambda r, i: effax.ref.set(r, i, 7), lambda x, i: x.__setitem__(i, 7)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", [1, -1, (0, 2), slice(1), ..., np.array([1, 0]), (slice(None), 1)], ids=str
)
@pytest.mark.parametrize("name", METHODS)
def test_methods_at_an_index(name: str, index: Any) -> None:
    method, on_numpy = METHODS[name]
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = start.copy()
    result = on_numpy(wanted, index)
    for run in (lambda f: f, effax.jit):
        whole, outer = new_ref(start), new_ref(np.stack([start, start]))
        refs: list[Any] = [whole] if name == "ref.set" else [whole, outer.at[1]]
        for r in refs:
            found = run(lambda r=r: method(r, index))()
            if result is not None:
                np.testing.assert_array_equal(np.asarray(found), result)
            np.testing.assert_array_equal(np.asarray(r[...]), wanted)


def test_freeze_ends_a_reference() -> None:
    r = new_ref(jnp.arange(3))
    frozen = freeze(r)
    assert np.asarray(frozen).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        frozen.numpy()[0] = 1
    assert "consumed by freeze" in repr(r)


def test_free_ref_ends_a_reference() -> None:
    r = new_ref(jnp.arange(3))
    free_ref(r)
    with pytest.raises(RefError, match="free_ref"):
        r[...]


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r[...],
        lambda r: r[0],
        lambda r: r.__setitem__(0, 1.0),
        lambda r: r.__setitem__(slice(None), 1.0),
        lambda r: ref.addupdate(r, 0, 1.0),
        lambda r: ref.swap(r, 0, 1.0),
        freeze,
        free_ref,
    ],
)
def test_use_after_freeze_is_an_error(use: Callable[[Ref], object]) -> None:
    r = new_ref(jnp.zeros(2))
    frozen = freeze(r)
    with pytest.raises(RefError, match="after `freeze` consumed it"):
        use(r)
    assert np.asarray(frozen).tolist() == [0, 0]


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r + 1,
        lambda r: 1 - r,
        lambda r: r @ r,
        lambda r: -r,
        abs,
        lambda r: r < 1,
        bool,
        float,
        list,
        np.asarray,
    ],
)
def test_a_reference_is_no_array(use: Callable[[Ref], object]) -> None:
    with pytest.raises(RefError, match=r"ref\[\.\.\.\]"):
        use(new_ref(jnp.zeros(1)))


@pytest.mark.parametrize(
    "use",
    [
        jnp.sin,
        jnp.sum,
        lambda r: jnp.add(r, 1),
        lambda r: jnp.zeros(1) + r,
        lambda r: jnp.where(True, r, 0),
        jnp.asarray,
        lambda r: jnp.concatenate([r, r]),
        lambda r: jnp.matmul(r, r),
        lambda r: jnp.reshape(r, (1,)),
        jnp.zeros(1).at[0].set,
        lambda r: jnp.zeros((1, 1))[r, 0],
    ],
)
def test_functions_refuse_references_with_the_remedy(use: Callable[[Any], object]) -> None:
    with pytest.raises((IllTyped, RefError), match=r"ref\[\.\.\.\]"):
        use(new_ref(jnp.zeros(1)))


def test_references_cannot_contain_references() -> None:
    with pytest.raises(RefError, match="reference"):
        new_ref(new_ref(0.0))


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        (1.5, IllTyped, "astype"),
        (jnp.zeros(3), IllTyped, "astype"),
        (jnp.arange(3, dtype=jnp.int32), IllTyped, "astype"),
        (300, BadArgument, "-128 to 127"),
        (np.zeros(2, np.int8), IllTyped, "broadcast"),
        (np.zeros((2, 3), np.int8), IllTyped, "broadcast"),
        ("no", IllTyped, "not an array"),
        (1j, IllTyped, "complex"),
    ],
    ids=repr,
)
def test_a_write_that_does_not_fit_changes_nothing(
    value: Any, error: type[Exception], says: str
) -> None:
    r = new_ref(jnp.array([1, 2, 3], jnp.int8))
    for write in (
        lambda: r.__setitem__(..., value),
        lambda: ref.addupdate(r, ..., value),
        lambda: ref.swap(r, ..., value),
    ):
        with pytest.raises(error, match=says):
            write()
        assert contents(r) == [1, 2, 3]


def test_values_that_keep_their_kind_are_converted() -> None:
    r = new_ref(jnp.zeros(2))
    for value in (1, True, np.float64(0.5), jnp.float16(2), np.int8(3), [1, 2.5], np.arange(2)):
        r[...] = value
        assert contents(r) == np.broadcast_to(np.asarray(value, np.float32), 2).tolist()


def test_booleans_cannot_be_added() -> None:
    with pytest.raises(IllTyped, match="numbers"):
        ref.addupdate(new_ref(jnp.zeros(2, bool)), 0, True)


@pytest.mark.parametrize("use", [ref.get, freeze, free_ref])
def test_functions_of_references_refuse_arrays(use: Callable[[Any], object]) -> None:
    with pytest.raises(IllTyped, match="new_ref"):
        use(jnp.zeros(2))


def test_copies_and_pickles_have_separate_memory() -> None:
    r = new_ref(jnp.arange(3))
    deep = copy.deepcopy(r)
    loaded = pickle.loads(pickle.dumps(r))
    r[0] = 9
    assert contents(deep) == [0, 1, 2]
    assert contents(loaded) == [0, 1, 2]
    assert copy.copy(r) is r


def test_the_buffer_of_a_reference_does_not_move() -> None:
    r = new_ref(jnp.zeros(1000))
    assert isinstance(r, EagerRef)
    address = r.memory().ctypes.data
    r[...] = jnp.ones(1000)
    r[5] += 1
    ref.addupdate(r, np.arange(3), 1.0)
    assert r.memory().ctypes.data == address


def test_large_and_empty_references() -> None:
    r = new_ref(jnp.zeros((0, 3)))
    r[...] = 1.0
    assert r[...].shape == (0, 3)
    with pytest.raises(IllTyped, match="len"):
        len(new_ref(0.0))


def test_writes_of_views_of_the_same_reference() -> None:
    r = new_ref(jnp.arange(5))
    r[1:] = r[:-1]
    assert contents(r) == [0, 0, 1, 2, 3]
    r[::-1] = r[...]
    assert contents(r) == [3, 2, 1, 0, 0]


def test_complex_and_half_references() -> None:
    r = new_ref(jnp.zeros(2, jnp.complex64))
    r[0] = 1 + 2j
    r[1] = 3
    assert contents(r) == [1 + 2j, 3]
    half = new_ref(jnp.zeros(2, jnp.bfloat16))
    half[0] = 1.5
    ref.addupdate(half, 0, jnp.bfloat16(2))
    assert float(half[0]) == 3.5


def test_results_of_reads_are_arrays() -> None:
    r = new_ref(jnp.arange(4.0).reshape(2, 2))
    for index in (0, (0, 1), ..., (..., None), np.array([1, 0])):
        assert isinstance(r[index], Array)
