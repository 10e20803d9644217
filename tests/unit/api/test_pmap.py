"""``pmap`` maps over as many elements as there are devices."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.experimental import io_callback
from effax.ir.errors import BadArgument

X = np.arange(3, dtype=np.float32)[None]


def test_it_maps_over_the_leading_axis() -> None:
    np.testing.assert_array_equal(effax.pmap(lambda x: x * 2)(X), 2 * X)
    f = effax.pmap(lambda x, n: x * n + lax.axis_index("i"), "i", static_broadcasted_argnums=1)
    np.testing.assert_array_equal(f(X, 3), 3 * X)
    g = effax.pmap(lambda x, y: (x * y, y), in_axes=(0, None), out_axes=(0, None))
    product, y = g(X, 2.0)
    np.testing.assert_array_equal(product, 2 * X)
    assert y == 2.0
    np.testing.assert_array_equal(effax.pmap(effax.pmap(jnp.square))(X[None]), X[None] ** 2)


def test_it_composes_with_transformations() -> None:
    square = effax.pmap(lambda x: x**2)
    np.testing.assert_array_equal(effax.grad(lambda x: jnp.sum(square(x)))(X), 2 * X)
    np.testing.assert_array_equal(effax.vmap(square)(X[None]), (X**2)[None])
    np.testing.assert_array_equal(effax.jit(square)(X), X**2)
    np.testing.assert_array_equal(square.lower(X).compile()(X), X**2)
    x = jnp.asarray(X) + 0
    effax.pmap(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()


def test_more_elements_than_devices_raise() -> None:
    with pytest.raises(BadArgument, match="2 elements, and there are 1 devices"):
        effax.pmap(jnp.sin)(np.ones(2))
    with pytest.raises(BadArgument, match="1 elements, and there are 2 devices"):
        effax.pmap(jnp.sin, devices=effax.devices() * 2)(np.ones(1))
    with pytest.raises(RuntimeError, match="gpu"):
        effax.pmap(jnp.sin, backend="gpu")(np.ones(1))


@pytest.mark.slow
def test_there_may_be_several_devices() -> None:
    code = (
        "import effax, effax.numpy as jnp; from effax import lax; "
        "f = effax.pmap(lambda x: lax.psum(x, 'i'), 'i'); "
        "print(effax.device_count(), f(jnp.arange(4.0)))"
    )
    env: dict[str, Any] = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert found.stdout == "4 [6. 6. 6. 6.]\n"


def test_a_callback_on_one_device_needs_no_method() -> None:
    calls: list[Any] = []

    def f(x: Any) -> Any:
        io_callback(calls.append, None, x[0], ordered=True)
        return effax.pure_callback(np.sin, x, x)

    np.testing.assert_allclose(effax.pmap(f)(X), np.sin(X), rtol=1e-6)
    mesh = effax.make_mesh((1,), ("i",))
    on_mesh = effax.shard_map(lambda x: f(x)[None], mesh=mesh, out_specs=effax.P("i"))
    np.testing.assert_allclose(on_mesh(X[0]), np.sin(X), rtol=1e-6)
    assert list(map(float, calls)) == [0, 0]
