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
    mesh = effax.make_mesh((1,), ("x",))
    with pytest.raises(BadArgument, match="shard_map"):
        effax.device_put(1.0, effax.NamedSharding(mesh, effax.P()))  # type: ignore[arg-type]  # wrong
    with pytest.raises(IllTyped, match="read it"):
        effax.device_put(effax.new_ref(1.0))


def test_device_get_makes_numpy_arrays_of_arrays() -> None:
    found = effax.device_get({"x": jnp.arange(2), "n": 3})
    assert type(found["x"]) is np.ndarray
    np.testing.assert_array_equal(found["x"], [0, 1])
    assert found["n"] == 3
    with pytest.raises(ConcretizationError):
        effax.jit(effax.device_get)(1.0)
