"""Functional updates: against NumPy's in-place ones, with every duplicate counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.arrays.array import Array
from effax.arrays.at import AtIndex
from effax.ir.errors import BadArgument, IllTyped
from effax.testing import check_grads
from tests.unit.numpy.tracing import run_traced, traced

X = np.array([2.0, 3.0, 5.0, 7.0, 11.0], np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4) + 1

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.true_divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}

INDICES: dict[str, Any] = {
    "int": 2,
    "negative": -1,
    "slice": slice(1, 4),
    "backwards": slice(None, None, -2),
    "unique": np.array([3, 0, 4]),
    "repeated": np.array([1, 3, 1, 1]),
    "grid": np.array([[0, 1], [1, 0]]),
    "mask": np.array([True, False, True, False, True]),
    "ellipsis": ...,
}


def in_place(ufunc: np.ufunc, x: np.ndarray, index: Any, value: np.ndarray) -> np.ndarray:
    made = x.copy()
    ufunc.at(made, index, value)
    return made


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", UFUNCS)
def test_updates(name: str, index: str) -> None:
    at = INDICES[index]
    value = np.linspace(0.5, 2.5, X[at].size, dtype=np.float32).reshape(X[at].shape)
    wanted = in_place(UFUNCS[name], X, at, value)
    found = getattr(jnp.asarray(X).at[at], name)(value)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", UFUNCS)
def test_updates_at_traced_positions(name: str) -> None:
    at = INDICES["repeated"]
    value = np.array([2, 0.5, 1.5, 3], np.float32)
    found = run_traced(lambda x, i, v: getattr(x.at[i], name)(v), *map(jnp.asarray, (X, at, value)))
    np.testing.assert_allclose(found, in_place(UFUNCS[name], X, at, value), rtol=1e-6)


def test_positions_of_rows_that_repeat() -> None:
    rows, columns = np.array([0, 2, 0]), slice(1, 3)
    value = np.array([[2, 3], [4, 5], [6, 7]], np.float32)
    wanted = in_place(np.multiply, M, (rows, columns), value)
    found = jnp.asarray(M).at[rows, columns].multiply(value)
    np.testing.assert_allclose(np.asarray(found), wanted)
    value = np.arange(9, dtype=np.float32).reshape(3, 3)
    swapped = in_place(np.multiply, M, (slice(None), rows), value)
    found = jnp.asarray(M).at[:, rows].multiply(value)
    np.testing.assert_allclose(np.asarray(found), swapped)


@pytest.mark.parametrize("name", ["multiply", "min", "max"])
def test_what_combines_at_repeated_positions_is_one_equation(name: str) -> None:
    """Also where factors are zero: their derivatives are products of the others."""

    def update(x: Array, i: Array, v: Array) -> Array:
        combined: Array = getattr(x.at[i], name)(v)
        return combined

    x, i, v = jnp.asarray(X), jnp.array([3, 0, 3, 3]), jnp.array([2.0, 5.0, 0.0, 0.0])
    program = traced(update, x, i, v)
    assert not {"scan", "while"} & {e.prim.name for e in program.eqns}
    combine = {"multiply": np.multiply, "min": np.minimum, "max": np.maximum}[name]
    wanted = np.array(X)
    combine.at(wanted, np.asarray(i), np.asarray(v))
    np.testing.assert_array_equal(np.asarray(effax.jit(update)(x, i, v)), wanted)
    check_grads(
        lambda x, v: update(jnp.asarray(x), i, v), (x + 0.3, v + jnp.arange(4) * 0.1), order=2
    )


def test_a_product_with_zeros_at_one_position_is_differentiated_exactly() -> None:
    def total(v: Array) -> Array:
        return jnp.ones(2).at[jnp.array([1, 1, 1])].multiply(v)[1]

    bend = effax.hessian(total)(jnp.array([0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(np.asarray(bend), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_a_promise_of_unique_positions_makes_a_smaller_program() -> None:
    def update(unique: bool) -> Callable[[Array, Array], Array]:
        return lambda x, i: x.at[i].power(2.0, unique_indices=unique)

    args = jnp.asarray(X), jnp.array([0, 3])
    plain, promised = traced(update(False), *args), traced(update(True), *args)
    assert "scan" in [e.prim.name for e in plain.eqns]
    assert "scan" not in [e.prim.name for e in promised.eqns]
    np.testing.assert_allclose(run_traced(update(True), *args), [4, 3, 5, 49, 11])


def test_set_and_apply() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(np.asarray(x.at[1].set(9)), [2, 9, 5, 7, 11])
    np.testing.assert_array_equal(np.asarray(x.at[1:3].set(np.array([8, 9]))), [2, 8, 9, 7, 11])
    np.testing.assert_allclose(np.asarray(x.at[::2].apply(jnp.square)), [4, 3, 25, 7, 121])
    repeated = x.at[np.array([0, 0])].apply(lambda old: old * 2)
    np.testing.assert_allclose(np.asarray(repeated), [8, 3, 5, 7, 11])


def test_booleans_are_set_and_ored() -> None:
    x = jnp.zeros(3, bool)
    np.testing.assert_array_equal(np.asarray(x.at[1].set(True)), [False, True, False])
    np.testing.assert_array_equal(np.asarray(x.at[1].add(True)), [False, True, False])


def test_get() -> None:
    x = jnp.asarray(X)
    out = np.array([1, 9, -9])
    np.testing.assert_array_equal(np.asarray(x.at[2].get()), 5)
    np.testing.assert_array_equal(np.asarray(x.at[out].get()), [3, 11, 2])
    np.testing.assert_array_equal(np.asarray(x.at[out].get(mode="clip")), [3, 11, 2])
    np.testing.assert_array_equal(np.asarray(x.at[out].get(mode="fill")), [3, np.nan, np.nan])
    np.testing.assert_array_equal(np.asarray(x.at[out].get(fill_value=-1)), [3, -1, -1])
    np.testing.assert_array_equal(np.asarray(x.at[7].get(mode="fill")), np.nan)
    whole = jnp.arange(3).at[out].get(mode="fill")
    np.testing.assert_array_equal(np.asarray(whole), [1, -(2**31), -(2**31)])
    found = run_traced(
        lambda x, i: x.at[:, i].get(mode="fill", fill_value=0), jnp.asarray(M), jnp.asarray(out)
    )
    np.testing.assert_array_equal(found, np.stack([M[:, 1], 0 * M[:, 1], 0 * M[:, 1]], 1))


def test_modes_of_updates() -> None:
    x, out = jnp.asarray(X), np.array([1, 9])
    np.testing.assert_array_equal(np.asarray(x.at[out].set(0)), [2, 0, 5, 7, 11])
    np.testing.assert_array_equal(np.asarray(x.at[out].set(0, mode="drop")), [2, 0, 5, 7, 11])
    np.testing.assert_array_equal(np.asarray(x.at[out].set(0, mode="clip")), [2, 0, 5, 7, 0])
    np.testing.assert_array_equal(np.asarray(x.at[out].add(1, mode="clip")), [2, 4, 5, 7, 12])


@pytest.mark.parametrize("name", ["set", "add", "multiply", "max", "subtract"])
def test_a_traced_mask_takes_values_of_every_position(name: str) -> None:
    mask = M[:, 0] > 4
    for value in (2.0, np.array([1, 2, 3, 4], np.float32)):

        def update(x: Array, m: Array, value: Any = value) -> Array:
            return getattr(x.at[m], name)(value)  # type: ignore[no-any-return]  # an update's

        args = jnp.asarray(M), jnp.asarray(mask)
        np.testing.assert_array_equal(run_traced(update, *args), np.asarray(update(*args)))


def test_the_old_array_stays() -> None:
    x = jnp.asarray(X)
    x.at[0].set(100)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_dtype_and_weakness() -> None:
    assert jnp.zeros(2, jnp.int8).at[0].set(3).dtype == jnp.int8
    assert jnp.zeros(2).at[0].add(jnp.float16(1)).dtype == jnp.float32
    assert not jnp.zeros(2).at[0].set(1).weak_type


LOSING: dict[str, tuple[Callable[[], Array], object]] = {
    "a float": (lambda: jnp.arange(3).at[0].set(1.7), [1, 1, 2]),
    "a complex number": (lambda: jnp.zeros(3).at[0].set(2 + 1j), [2, 0, 0]),
    "a complex array": (lambda: jnp.arange(3).at[0].add(jnp.array(2 + 1j)), [2, 1, 2]),
    "a float that is added": (lambda: jnp.arange(3).at[1].add(1.7), [0, 2, 2]),
    "a wide integer": (lambda: jnp.zeros(2, jnp.int8).at[0].set(jnp.int32(5)), [5, 0]),
    "a number in booleans": (lambda: jnp.ones(2, bool).at[0].set(0), [False, True]),
    "a result": (lambda: jnp.arange(3).at[1].apply(lambda x: x + 0.5), [0, 1, 2]),
}


@pytest.mark.parametrize("name", LOSING)
def test_a_value_that_loses_its_kind_is_converted_with_a_warning(name: str) -> None:
    update, found = LOSING[name]
    for run in (lambda f: f, effax.jit):
        with pytest.warns(FutureWarning, match="does not fit"):
            made = run(update)()
        np.testing.assert_array_equal(np.asarray(made), found)


def test_quotients_of_integers_are_floats() -> None:
    made = jnp.arange(3).at[1].divide(2)
    assert made.dtype == jnp.float32
    assert made.tolist() == [0, 0.5, 2]


def test_negative_positions_are_out_of_bounds_without_wrapping() -> None:
    x, at = jnp.arange(3), jnp.array([-1, 1], jnp.int8)
    for run in (lambda f: f, effax.jit):
        made = run(lambda x, at: x.at[at].add(7, wrap_negative_indices=False))(x, at)
        np.testing.assert_array_equal(np.asarray(made), [0, 8, 2])
        made = run(lambda x, at: x.at[at].get(wrap_negative_indices=False, mode="clip"))(x, at)
        np.testing.assert_array_equal(np.asarray(made), [0, 1])
    assert x.at[-1].set(7, wrap_negative_indices=False).tolist() == [0, 1, 2]
    made = x.at[-1].get(wrap_negative_indices=False, mode="fill", fill_value=9)
    assert made.tolist() == 9


@pytest.mark.slow
@pytest.mark.parametrize("index", [(0,), (slice(None), 0), (jnp.array([0, 1]),)])
def test_a_traced_boolean_in_an_index_decides_about_the_update(index: tuple[object, ...]) -> None:
    x = jnp.asarray(M)
    for truth in (True, False):
        for name in ("set", "add", "multiply"):

            def update(x: Array, t: Array | bool, name: str = name) -> Array:
                return getattr(x.at[(t, *index)], name)(7.0)  # type: ignore[no-any-return]  # an update's

            made = effax.jit(update)(x, jnp.array(truth))
            np.testing.assert_array_equal(
                np.asarray(made), np.asarray(update(x, True) if truth else x)
            )


def test_masks_of_no_elements_select_nothing() -> None:
    empty = jnp.zeros(0, bool)
    assert jnp.arange(3.0)[empty].shape == (0,)
    assert jnp.ones((3, 2))[:, empty].shape == (3, 0)
    assert jnp.arange(3).at[empty].set(5).tolist() == [0, 1, 2]


def test_a_list_is_no_index() -> None:
    x = jnp.asarray(M)
    for index in ([0, 1], [True], []):
        with pytest.raises(TypeError, match="indexed by a list"):
            x[index]
        with pytest.raises(TypeError, match="indexed by a list"):
            x.at[index].set(0)
    np.testing.assert_array_equal(np.asarray(x[:, [0, 1]]), M[:, [0, 1]])
    np.testing.assert_array_equal(np.asarray(x[(0, 1),]), M[(0, 1),])


@pytest.mark.parametrize(
    ("update", "error", "says"),
    [
        (lambda at: at.set(jnp.array([1, 2])), IllTyped, "broadcast"),
        (lambda at: at.set(1 << 40), BadArgument, "does not fit"),
        (lambda at: at.set(1, mode="wild"), BadArgument, "mode"),
        (lambda at: at.get(mode="wild"), BadArgument, "mode"),
        (lambda at: at.set("one"), IllTyped, "not an array"),
    ],
)
def test_bad_updates(update: Callable[[AtIndex], Array], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        update(jnp.arange(3).at[0])


@pytest.mark.slow
@pytest.mark.jax
def test_as_jax() -> None:
    import jax.numpy as theirs

    x, at = M[:, :3], np.array([0, 2, 0])
    for name in ("set", "add", "multiply", "min", "max"):
        ours = getattr(jnp.asarray(x).at[:, at], name)(2.5)
        other = getattr(theirs.asarray(x).at[:, at], name)(2.5)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(other))
