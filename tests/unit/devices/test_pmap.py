"""``pmap`` on devices: each has an element of the mapped axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument

X = jnp.arange(32.0).reshape(8, 4)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_elements_are_on_devices(count: int) -> None:
    f = jax.pmap(lambda x: x / lax.psum(x.sum(), "i") + lax.axis_index("i"), axis_name="i")
    found = f(X[:count])
    wanted = X[:count] / X[:count].sum() + np.arange(count)[:, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found.devices() == set(jax.devices()[:count])
    assert found.addressable_shards[1].data.shape == (1, 4)


def test_axes_trees_and_arguments_that_are_not_mapped() -> None:
    def fun(tree: Any, scale: Any, *, shift: Any) -> Any:
        return {"a": tree["x"] * scale, "b": tree["y"].sum() + shift}

    mapped = jax.pmap(fun, in_axes=({"x": 0, "y": 1}, None), out_axes={"a": 1, "b": 0})
    found = mapped({"x": X, "y": X.T}, 2.0, shift=jnp.arange(8.0))
    np.testing.assert_allclose(found["a"], 2 * X.T)
    np.testing.assert_allclose(found["b"], X.sum(1) + np.arange(8.0))
    grads = jax.grad(lambda x: jax.pmap(lambda r: (r**2).sum())(x).sum())(X)
    np.testing.assert_allclose(grads, 2 * X)
    power = jax.pmap(lambda x, n: x**n, static_broadcasted_argnums=1)
    np.testing.assert_allclose(power(X, 3), X**3)


def test_more_elements_than_devices() -> None:
    with pytest.raises(BadArgument, match="9 elements, and there are 8 devices"):
        jax.pmap(jnp.sin)(jnp.ones((9, 2)))


def test_a_result_without_an_axis_is_that_of_the_first_device() -> None:
    found = jax.pmap(lambda x: (lax.psum(x, "i"), x), "i", out_axes=(None, 0))(jnp.arange(4.0))
    np.testing.assert_allclose(found[0], 6.0)
    np.testing.assert_allclose(found[1], np.arange(4.0))
