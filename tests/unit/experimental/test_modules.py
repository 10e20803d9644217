"""Modules of JAX's experimental names that are thin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.experimental.compilation_cache import compilation_cache
from effax.experimental.mesh_utils import create_device_mesh
from effax.experimental.pjit import pjit
from effax.experimental.serialize_executable import deserialize_and_load, serialize
from effax.experimental.shard_map import shard_map
from effax.ir.errors import BadArgument, LoweringError


def test_pjit_is_jit() -> None:
    assert pjit is jax.jit
    assert pjit(lambda x: x + 1, static_argnums=())(1) == 2


def test_arrays_of_devices() -> None:
    mesh = create_device_mesh((1, 1), jax.devices()[:1])
    assert mesh.shape == (1, 1) and mesh[0, 0] is jax.devices()[0]
    with pytest.raises(BadArgument, match=r"expected: 2, for the shape \(2,\)"):
        create_device_mesh((2,), jax.devices()[:1])


def test_the_earlier_form_of_shard_map() -> None:
    mesh, spec = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec("x")
    f = shard_map(lambda x: jax.lax.psum(x, "x"), mesh, spec, jax.sharding.PartitionSpec())
    for run in (f, jax.jit(f)):
        np.testing.assert_array_equal(run(jnp.arange(2.0)), [0.0, 1.0])
    with pytest.raises(BadArgument, match="no axis is left"):
        shard_map(lambda x: x, mesh, spec, spec, auto=frozenset({"x"}))


def test_the_directory_of_executables(tmp_path: Path) -> None:
    assert not compilation_cache.is_initialized()
    compilation_cache.set_cache_dir(tmp_path)
    try:
        assert compilation_cache.is_initialized()
        assert jax.config.read("jax_compilation_cache_dir") == str(tmp_path)
    finally:
        compilation_cache.reset_cache()
    assert not compilation_cache.is_initialized()


@pytest.mark.slow
def test_a_compiled_call_is_written_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = jnp.arange(3.0, dtype="bfloat16")
    compiled = jax.jit(lambda x, *, k: {"y": (x * table, k)}).lower(jnp.ones(3), k=2).compile()
    data, in_tree, out_tree = serialize(compiled)
    loaded = deserialize_and_load(data, in_tree, out_tree, execution_devices=jax.devices()[:1])
    y, k = loaded(jnp.full(3, 2.0), k=5)["y"]
    assert (y.tolist(), y.dtype, k, k.weak_type) == ([0.0, 2.0, 4.0], "float32", 5, True)
    assert "HloModule" in loaded.as_text()
    with pytest.raises(TypeError, match="arguments"):
        loaded(jnp.ones(3))
    with pytest.raises(LoweringError, match="valid compiled call"):
        deserialize_and_load(data[:40], in_tree, out_tree)
    ref = jax.new_ref(0.0)
    with pytest.raises(ValueError, match="serialize with a closed-over reference"):
        serialize(jax.jit(lambda: ref[...]).lower().compile())
    monkeypatch.setattr(type(compiled), "on_devices", True)
    with pytest.raises(BadArgument, match="several devices"):
        serialize(compiled)
