"""Checkpoints of divided arrays: restored onto other meshes, shardings and numbers of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.checkpoints import safetensors
from effax.checkpoint import restore, save
from effax.ir.errors import IllTyped
from effax.sharding import NamedSharding, P, SingleDeviceSharding

X = np.arange(128.0, dtype=np.float32).reshape(16, 8)
GRID = jax.make_mesh((4, 2), ("x", "y"))
PLACES = [
    NamedSharding(GRID, P("x")),
    NamedSharding(GRID, P("y", "x")),
    NamedSharding(GRID, P(None, ("y", "x"))),
    NamedSharding(jax.make_mesh((2,), ("z",)), P(None, "z")),
    NamedSharding(GRID, P()),
    SingleDeviceSharding(jax.devices()[5]),
]


@pytest.mark.parametrize("of", PLACES[:5])
def test_a_divided_array_is_restored_onto_every_other_placement(of: Any, tmp_path: Path) -> None:
    keys = jax.random.split(jax.random.key(0), (16, 8))
    tree = {"x": X, "k": keys, "h": jnp.asarray(X, jnp.bfloat16), "i": jnp.asarray(X % 8, "int4")}
    save(tmp_path, jax.device_put(tree, of))
    for to in PLACES:
        like = jax.tree.map(lambda x, to=to: jax.ShapeDtypeStruct.like(x).update(sharding=to), tree)
        found = restore(tmp_path, like=like)
        assert all(x.sharding == to for x in found.values())
        np.testing.assert_array_equal(found["x"], X)
        np.testing.assert_array_equal(found["h"], tree["h"])
        np.testing.assert_array_equal(found["i"], tree["i"])
        np.testing.assert_array_equal(jax.random.key_data(found["k"]), jax.random.key_data(keys))
    np.testing.assert_array_equal(restore(tmp_path)["['x']"], X)
    with pytest.raises(IllTyped, match=r"\['x'\]: .*divide"):
        restore(
            tmp_path,
            like={"x": jax.ShapeDtypeStruct((16, 8), "float32", sharding=odd())},
            partial=True,
        )


def odd() -> Any:
    return NamedSharding(jax.make_mesh((3,), ("z",)), P("z"))


def test_references_keep_their_placement(tmp_path: Path) -> None:
    table: Any = jax.new_ref(jax.device_put(X, PLACES[0]))
    other: Any = jax.new_ref(jax.device_put(jnp.zeros((16, 8)), PLACES[1]))

    @jax.jit
    def step(value: Any) -> Any:
        table[jnp.array([3, 3, 15])] += value
        return jnp.sum(table[...])

    saving = save(tmp_path, {"t": table}, wait=False)
    first = float(step(1.0))
    saving.wait()
    restore(tmp_path, like={"t": table})
    np.testing.assert_array_equal(table[...], X)
    assert float(step(1.0)) == first and table.sharding == PLACES[0]
    restore(tmp_path, like={"t": other})
    np.testing.assert_array_equal(other[...], X)
    assert other.sharding == PLACES[1]


def test_a_device_reads_the_bytes_of_its_part(tmp_path: Path, monkeypatch: Any) -> None:
    save(tmp_path, jax.device_put(X, PLACES[0]))
    read: list[tuple[int, int]] = []
    monkeypatch.setattr(safetensors.Container, "_verify", lambda _, *span: read.append(span))
    rows = NamedSharding(jax.make_mesh((8,), ("z",)), P("z"))
    restore(tmp_path, like=jax.ShapeDtypeStruct((16, 8), "float32", sharding=rows))
    assert sorted(read) == [(64 * i, 64 * i + 64) for i in range(8)]
