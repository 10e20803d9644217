"""References whose contents are divided over devices, and updated in place there."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import RefError
from effax.lowering import xla
from effax.sharding import NamedSharding, P

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)
GRID = jax.make_mesh((4, 2), ("x", "y"))

both_ways = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])


def placed(*entries: Any, x: Any = X) -> Any:
    return jax.device_put(x, NamedSharding(GRID, P(*entries)))


def addresses(ref: Any) -> list[int]:
    place = ref.contents.place
    return [xla.read_part(ref._buffer, place, k).ctypes.data for k in place.local]


@both_ways
def test_updates_are_in_place_on_each_device(way: Any) -> None:
    ref = jax.new_ref(placed("x", "y"))
    before = addresses(ref)

    def update(ref: Any, v: Any) -> Any:
        ref[1, 2] = v
        jax.ref.addupdate(ref, (slice(None), 0), v)
        return ref[3]

    wanted = X.copy()
    for _ in range(3):
        found = way(update)(ref, 7.0)
        wanted[1, 2] = 7.0
        wanted[:, 0] += 7.0
        np.testing.assert_array_equal(found, wanted[3])
    np.testing.assert_array_equal(ref[...], wanted)
    assert ref.sharding == NamedSharding(GRID, P("x", "y"))
    assert ref[...].devices() == set(jax.devices())
    assert addresses(ref) == before


@both_ways
def test_rows_of_a_divided_table_are_accumulated_into(way: Any) -> None:
    table = jax.new_ref(placed("x"))
    rows = jnp.array([0, 5, 5, 7])

    def add(i: Any, v: Any) -> Any:
        jax.ref.addupdate(table, i, v)
        return table[i].sum()

    wanted = X.copy()
    np.add.at(wanted, np.asarray(rows), 1.0)
    total = way(add)(rows, jnp.ones((4, 4)))
    np.testing.assert_array_equal(table[...], wanted)
    np.testing.assert_allclose(total, wanted[np.asarray(rows)].sum())


@pytest.mark.parametrize("index", [jnp.array([3, 5]), jnp.int32(-3)], ids=["rows", "a row"])
def test_an_indexed_update_and_read_gather_nothing(index: Any) -> None:
    ref = jax.new_ref(jax.device_put(jnp.zeros((1 << 12, 8)), NamedSharding(GRID, P("x"))))

    def write(ref: Any, i: Any, v: Any) -> Any:
        jax.ref.addupdate(ref, i, v)
        return ref[i, 2:5]

    found = jax.jit(write)(ref, index, jnp.ones(8))
    np.testing.assert_array_equal(found, np.ones((*index.shape, 3)))
    assert float(ref[...].sum()) == 8 * index.size
    text = jax.jit(write).lower(ref, index, jnp.ones(8)).compile().as_text()
    assert "all-gather" not in text and "all-to-all" not in text


def test_a_window_out_of_bounds_is_moved_inside_as_on_one_device() -> None:
    x = placed("x")
    place = lambda x: lax.dynamic_update_slice(x, jnp.full((2, 4), -1.0), (9, 0))  # noqa: E731
    np.testing.assert_array_equal(jax.jit(place)(x), place(X))


def test_additions_of_devices_into_a_shared_reference_are_summed() -> None:
    total = jax.new_ref(placed(x=np.zeros(4, np.float32)))

    def add(x: Any) -> None:
        jax.ref.addupdate(total, ..., x.sum(0))

    jax.jit(jax.shard_map(add, mesh=GRID, in_specs=P(("x", "y")), out_specs=P()))(placed("x"))
    np.testing.assert_allclose(total[...], X.sum(0))

    def write(x: Any) -> None:
        total[...] = x.sum(0)

    with pytest.raises(RefError, match="is written"):
        jax.jit(jax.shard_map(write, mesh=GRID, in_specs=P("x"), out_specs=P()))(X)
    np.testing.assert_allclose(total[...], X.sum(0))


def test_each_device_writes_its_part() -> None:
    line = jax.make_mesh((4,), ("x",))
    ref = jax.new_ref(jax.device_put(X, NamedSharding(line, P("x"))))

    def write(own: Any, x: Any) -> Any:
        own[0] = x[0] * 0 + lax.axis_index("x")
        return lax.psum(own[1], "x")

    on = jax.jit(jax.shard_map(write, mesh=line, in_specs=(P("x"), P("x")), out_specs=P()))
    before = addresses(ref)
    np.testing.assert_allclose(on(ref, X), X[1::2].sum(0))
    assert addresses(ref) == before
    assert "all-gather" not in on.lower(ref, X).compile().as_text()
    np.testing.assert_array_equal(ref[::2], np.repeat(np.arange(4.0), 4).reshape(4, 4))
    np.testing.assert_array_equal(ref[1::2], X[1::2])


def test_gradients_are_accumulated_in_place() -> None:
    w, grads = (
        placed(None, "y", x=np.ones((4, 4), np.float32)),
        jax.new_ref(jnp.zeros_like(placed(None, "y", x=np.ones((4, 4), np.float32)))),
    )
    assert grads.sharding == w.sharding
    before = addresses(grads)

    @jax.jit
    def step(w: Any, x: Any) -> None:
        _, pullback = jax.vjp(lambda w: jnp.sum((x @ w) ** 2), w)
        pullback.with_refs(grads)(1.0)

    for _ in range(2):
        step(w, placed("x"))
    np.testing.assert_allclose(grads[...], 4 * X.T @ (X @ np.ones((4, 4))), rtol=1e-5)
    assert addresses(grads) == before


def test_the_end_of_a_reference_and_copies() -> None:
    ref = jax.new_ref(placed("x"))
    other = copy.deepcopy(ref)
    ref[0] = 0.0
    np.testing.assert_array_equal(other[...], X)
    assert "Ref(" in repr(ref)
    frozen = jax.freeze(ref)
    assert frozen.sharding == NamedSharding(GRID, P("x")) and float(frozen[0].sum()) == 0.0
    with pytest.raises(RefError, match="consumed"):
        ref[0]
    with pytest.raises(RefError, match="consumed"):
        jax.jit(lambda r: r[0])(ref)
    two = jax.jit(lambda a, b: a.__setitem__(0, b[1]))
    with pytest.raises(RefError, match="one reference as"):
        two(other, other)


def test_values_that_are_not_placed_and_references_that_are_not() -> None:
    ref, plain = jax.new_ref(placed("x")), jax.new_ref(jnp.zeros((8, 4)))
    ref[...] = jnp.ones((8, 4))
    plain[...] = placed("x")
    np.testing.assert_array_equal(plain[...], X)

    @jax.jit
    def swap(a: Any, b: Any) -> None:
        a[...], b[...] = b[...], a[...]

    swap(ref, plain)
    np.testing.assert_array_equal(ref[...], X)
    np.testing.assert_array_equal(plain[...], np.ones((8, 4)))
