"""Layers as pairs of functions."""

from __future__ import annotations

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import random
from effax.example_libraries import stax
from effax.ir.errors import BadArgument

KEY = random.PRNGKey(0)


@pytest.mark.slow
def test_a_network_of_all_layers() -> None:
    branches = stax.parallel(stax.Conv(3, (1, 1)), stax.serial(stax.ConvTranspose(3, (1, 1))))
    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu,
        stax.MaxPool((2, 2), (2, 2)), stax.FanOut(2), branches, stax.FanInSum,
        stax.AvgPool((2, 2), padding="SAME"), stax.SumPool((2, 2)), stax.FanOut(2),
        stax.FanInConcat(), stax.Flatten, stax.Dropout(0.7), stax.Dense(3), stax.LogSoftmax,
        stax.shape_dependent(lambda shape: stax.Dense(shape[-1] + 1)),
    )  # fmt: skip
    shape, params = init(KEY, (-1, 8, 8, 2))
    assert shape == (-1, 4)
    x = np.random.RandomState(0).randn(2, 8, 8, 2).astype("float32")
    found = apply(params, x, rng=random.PRNGKey(1))
    wanted = [[22.564, 32.344, -5.57, -44.613], [4.322, 6.917, -1.456, -12.141]]
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    compiled = jax.jit(apply)(params, x, rng=random.PRNGKey(1))
    np.testing.assert_allclose(found, compiled, rtol=1e-4)
    assert jax.grad(lambda p: jnp.sum(apply(p, x, rng=KEY)))(params)[0][0].shape == (3, 3, 2, 4)


def test_shapes_are_those_of_the_output() -> None:
    layers = {
        "valid": (stax.Conv(2, (3, 3), (2, 2)), (1, 7, 7, 3)),
        "transposed": (stax.Conv1DTranspose(2, (3,), (2,)), (1, 7, 3)),
        "layout": (stax.MaxPool((2, 3), spec="NCHW"), (1, 2, 5, 6)),
        "dense": (stax.Dense(4), (1, 5, 3)),
        "identity": (stax.Identity, (1, 3)),
    }
    for name, ((init, apply), given) in layers.items():
        shape, params = init(KEY, given)
        assert apply(params, jnp.ones(given)).shape == shape, name
        assert init(KEY, (-1, *given[1:]))[0] == (-1, *shape[1:]), name


def test_dropout() -> None:
    _, apply = stax.Dropout(0.5)
    found = apply((), jnp.ones(100), rng=KEY)
    assert {*np.asarray(found).tolist()} == {0.0, 2.0}
    assert jnp.all(stax.Dropout(0.5, "test")[1]((), jnp.ones(3)) == 1)
    with pytest.raises(BadArgument, match="draws numbers"):
        apply((), jnp.ones(3))
