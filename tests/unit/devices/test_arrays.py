"""Arrays over devices: their parts, shardings and conversions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped, LoweringError
from effax.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)
GRID = jax.make_mesh((4, 2), ("x", "y"))


def placed(spec: Any, x: Any = X, mesh: Mesh = GRID) -> Any:
    return jax.device_put(x, NamedSharding(mesh, spec))


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P(None, "y"), P("y", "x"), P(("y", "x")), P("x", "y")]
)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_parts_are_where_the_specification_says(spec: Any, count: int) -> None:
    mesh = jax.make_mesh((count // 2, 2), ("x", "y"))
    x = placed(spec, mesh=mesh)
    np.testing.assert_array_equal(x, X)
    assert x.sharding == NamedSharding(mesh, spec) and x.committed and x.is_fully_addressable
    assert x.devices() == set(jax.devices()[:count])
    assert x.is_fully_replicated == (len({str(s.index) for s in x.addressable_shards}) == 1)
    assert x.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec, *[None] * (2 - len(spec)))), 2)
    shards = x.addressable_shards
    assert [s.device for s in shards] == list(mesh.devices.flat)
    for k, s in enumerate(shards):
        np.testing.assert_array_equal(s.data, X[s.index])
        assert s.data.devices() == {s.device} and s.data.shape == x.sharding.shard_shape(x.shape)
        np.testing.assert_array_equal(x.addressable_data(k), s.data)
    assert len({(str(s.index), s.replica_id) for s in shards}) == count


def test_elements_of_every_kind_are_divided() -> None:
    for dtype in (jnp.bfloat16, jnp.bool_, jnp.int8, jnp.complex64, jnp.float8_e5m2):
        x = placed(P("x"), jnp.asarray(X[:, 0]).astype(dtype))
        assert x.dtype == dtype and x.addressable_shards[0].data.dtype == dtype
        np.testing.assert_array_equal(x, jnp.asarray(X[:, 0]).astype(dtype))
    keys = jax.random.split(jax.random.key(0), 8)
    divided = placed(P("x"), keys)
    np.testing.assert_array_equal(jax.random.key_data(divided), jax.random.key_data(keys))
    assert placed(P("x"), np.ones((8, 0), np.float32)).shape == (8, 0)
    weak = placed(P(), 1.0)
    assert weak.weak_type and float(weak) == 1.0


def test_a_copy_is_placed_alike() -> None:
    for x in (placed(P("x")), jax.device_put(X, jax.devices()[2])):
        for copied in (x.astype(x.dtype, copy=True), jnp.array(x), jnp.copy(x)):
            assert copied is not x and copied.sharding == x.sharding
            np.testing.assert_array_equal(copied, X)


def test_devices_of_a_sharding_are_in_order() -> None:
    mesh = Mesh(np.array(jax.devices())[[3, 1, 0, 2]], "x")
    assert [d.id for d in NamedSharding(mesh, P("x"))._device_assignment] == [3, 1, 0, 2]
    whole = jax.jit(lambda x: x.reshape(2, 16))(placed(P("x"), mesh=mesh))
    assert [d.id for d in whole.sharding._device_assignment] == [3, 1, 0, 2]


def test_an_array_moves_between_shardings_and_devices() -> None:
    x, last = placed(P("x")), jax.devices()[-1]
    for sharding in (NamedSharding(GRID, P("y", "x")), SingleDeviceSharding(last)):
        np.testing.assert_array_equal(jax.device_put(x, sharding), X)
    y = jax.device_put(x, last)
    np.testing.assert_array_equal(y, X)
    assert y.device == last and y.sharding == SingleDeviceSharding(last)
    assert x.to_device(last).device == last and x.device == x.sharding
    assert jax.device_put(x, x.sharding) is x
    assert jnp.zeros(3, device=last).device == last
    with jax.sharding.set_mesh(GRID):
        assert jax.device_put(X, P("x")).sharding == x.sharding
    np.testing.assert_array_equal(jax.device_get(x), X)


def test_arrays_of_parts() -> None:
    sharding = NamedSharding(GRID, P("x"))
    seen: list[Any] = []

    def part(index: Any) -> Any:
        seen.append(index)
        return X[index]

    made = jax.make_array_from_callback(X.shape, sharding, part)
    np.testing.assert_array_equal(made, X)
    assert len(seen) == 4 and made.sharding == sharding
    parts = [s.data for s in made.addressable_shards]
    joined = jax.make_array_from_single_device_arrays(X.shape, sharding, parts[::-1])
    np.testing.assert_array_equal(joined, X)
    local = jax.make_array_from_process_local_data(sharding, X)
    np.testing.assert_array_equal(local, X)
    with pytest.raises(BadArgument, match="one array for each device"):
        jax.make_array_from_single_device_arrays(X.shape, sharding, parts[1:])
    with pytest.raises(IllTyped, match="part of device"):
        jax.make_array_from_callback(X.shape, sharding, lambda index: X)


def test_what_does_not_divide_names_dimension_and_axis() -> None:
    with pytest.raises(IllTyped, match=r"dimension 1 \(over 'x'\)"):
        placed(P(None, "x"), np.ones((8, 3)))
    with pytest.raises(IllTyped, match="names an axis"):
        placed(P("z"))


def test_copies_pickles_and_text() -> None:
    x = placed(P("x", "y"))
    assert repr(x) == repr(jnp.asarray(X)) and str(x) == str(jnp.asarray(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)
    assert pickle.loads(pickle.dumps(x.sharding)) == x.sharding
    assert copy.deepcopy(x) is x


def test_memory_of_parts_is_not_exported_as_one() -> None:
    for use in (np.from_dlpack, lambda x: x.unsafe_buffer_pointer()):
        with pytest.raises(BadArgument, match="on one device"):
            use(placed(P("x")))


def test_a_deleted_array_is_not_read() -> None:
    x = placed(P("x"))
    x.delete()
    assert x.is_deleted()
    with pytest.raises(LoweringError, match="deleted"):
        np.asarray(x)


def test_placements_are_drawn(capsys: Any) -> None:
    jax.debug.visualize_array_sharding(placed(P("x", "y")), use_color=False)
    drawn = capsys.readouterr().out
    assert all(f"CPU {k}" in drawn for k in range(8)) and drawn.count("\n") == 9
    jax.debug.visualize_array_sharding(placed(P(None, "y"))[0] * 0 + X[0])
    jax.debug.visualize_array_sharding(placed(P("x"), X[:, 0]), use_color=False)
    assert "CPU 0,1" in capsys.readouterr().out
    with pytest.raises(BadArgument, match="one or two axes"):
        jax.debug.visualize_array_sharding(jnp.ones((1, 1, 1)))
    seen: list[Any] = []
    jax.debug.inspect_array_sharding(placed(P("x")), callback=seen.append)
    assert seen == [NamedSharding(GRID, P("x"))]


def test_a_mesh_of_more_devices_than_there_are_runs_on_one() -> None:
    assert not jax.make_mesh((16,), ("x",)).has_devices
    assert GRID.has_devices and GRID.devices.shape == (4, 2)
