"""Devices, and transfers of trees to and from them."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped


def test_devices_are_those_of_one_process() -> None:
    first = effax.devices()[0]
    assert isinstance(first, effax.Device)
    assert effax.devices("cpu") == effax.local_devices() == effax.local_devices(backend="cpu")
    assert effax.device_count() == effax.local_device_count() == len(effax.devices())
    assert effax.default_backend() == first.platform == "cpu"
    assert (effax.process_index(), effax.process_count()) == (0, 1)


def test_a_platform_without_devices_is_a_runtime_error() -> None:
    for query in (effax.devices, effax.device_count, effax.process_index, effax.process_count):
        with pytest.raises(RuntimeError, match=r"found: .*'gpu'"):
            query("gpu")


def test_device_put_makes_arrays_of_the_leaves() -> None:
    source = np.arange(3)
    x, y, z = effax.device_put((source, 1.0, None), effax.devices()[0])
    source[0] = 7
    assert isinstance(x, effax.Array)
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert y.aval.weak_type
    assert z is None
    np.testing.assert_array_equal(effax.jit(lambda x: effax.device_put(x) * 2)(x), [0, 2, 4])


def test_device_put_elsewhere_and_of_references_raises() -> None:
    with pytest.raises(BadArgument, match="shard_map"):
        effax.device_put(1.0, "tpu")
    with pytest.raises(IllTyped, match="read it"):
        effax.device_put(effax.new_ref(1.0))


def test_device_get_makes_numpy_arrays_of_arrays() -> None:
    found = effax.device_get({"x": jnp.arange(2), "n": 3})
    assert type(found["x"]) is np.ndarray
    np.testing.assert_array_equal(found["x"], [0, 1])
    assert found["n"] == 3
    with pytest.raises(ConcretizationError):
        effax.jit(effax.device_get)(1.0)


def test_arrays_are_on_the_first_device() -> None:
    first = effax.devices()[0]
    x = jnp.ones((2, 3))
    assert x.sharding == effax.sharding.SingleDeviceSharding(first)
    assert x.device == first
    assert x.devices() == x.sharding.device_set == {first}
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert not x.committed
    (shard,) = x.addressable_shards
    np.testing.assert_array_equal(shard.data, np.asarray(x)[shard.index])
    x.copy_to_host_async()
    assert x.to_device(first) is x
    traced = effax.jit(lambda y: y * (y.sharding == x.sharding))
    np.testing.assert_array_equal(traced(x), x)


def test_device_put_keeps_a_sharding() -> None:
    mesh = effax.make_mesh((1,), ("x",), devices=effax.devices())
    sharding = effax.NamedSharding(mesh, effax.P("x"))
    placed = effax.device_put({"w": np.ones(4), "b": 1.0}, {"w": sharding, "b": None})
    assert placed["w"].sharding == sharding
    assert placed["w"].devices() == set(effax.devices())
    assert (placed["w"] + 1).sharding.is_fully_replicated
    divided = effax.NamedSharding(effax.make_mesh((2,), ("x",)), effax.P("x"))
    assert effax.device_put(np.ones(4), divided).sharding == divided
    with pytest.raises(IllTyped, match="divi"):
        effax.device_put(np.ones(3), divided)
    keys = effax.random.split(effax.random.key(0), 4)
    same = effax.make_array_from_callback((4,), sharding, lambda index: keys[index])
    assert same.dtype == keys.dtype
    assert (effax.random.key_data(same) == effax.random.key_data(keys)).all()
    made = effax.make_array_from_callback((4,), sharding, lambda index: np.arange(4)[index])
    np.testing.assert_array_equal(made, np.arange(4))
    assert made.sharding == sharding


def test_a_deleted_array_is_not_used_again() -> None:
    x = jnp.ones(3)
    x.delete()
    assert x.is_deleted()
    for use in (lambda: x + 1, lambda: effax.jit(jnp.sin)(x), lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match="deleted"):
            use()
    y = jnp.ones(3)
    moved = effax.device_put(y, donate=True)
    assert y.is_deleted()
    np.testing.assert_array_equal(moved, np.ones(3))
    z = jnp.ones(3)
    copied = effax.device_put(z, may_alias=False)
    z.delete()
    np.testing.assert_array_equal(copied, np.ones(3))


def test_there_is_one_process() -> None:
    assert effax.process_indices() == [0]
    text = effax.print_environment_info(return_string=True)
    assert text is not None
    assert "jaxlib:" in text
    assert "device info: cpu" in text


def test_dlpack_shares_arrays_of_other_libraries() -> None:
    source = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(effax.dlpack.from_dlpack(source), source)
    assert effax.dlpack.from_dlpack(np.arange(2)).dtype == np.int32
    assert effax.dlpack.is_supported_dtype(np.float32)
    with pytest.raises(BadArgument, match="__dlpack__"):
        effax.dlpack.from_dlpack([1.0])  # type: ignore[arg-type]  # wrong


def test_listeners_get_events_and_durations() -> None:
    seen: list[tuple[object, ...]] = []
    monitoring = effax.monitoring
    monitoring.register_event_listener(lambda name, **_: seen.append((name,)))
    monitoring.register_scalar_listener(lambda *args: seen.append(args))
    monitoring.record_event("step")
    monitoring.record_scalar("loss", 1.0)
    monitoring.clear_event_listeners()
    monitoring.record_event("later")
    assert seen == [("step",), ("loss", 1.0)]


def test_profiles_are_refused_or_warned_about() -> None:
    step = effax.profiler.StepTraceAnnotation("train", step_num=1)
    with pytest.warns(UserWarning, match="no profile"), effax.profiler.trace("profiles"), step:
        assert effax.profiler.annotate_function(lambda x: x + 1)(1) == 2
    with pytest.raises(BadArgument, match="no trace"):
        effax.profiler.stop_trace()
    with pytest.raises(NotImplementedError, match="memory_analysis"):
        effax.profiler.device_memory_profile()
