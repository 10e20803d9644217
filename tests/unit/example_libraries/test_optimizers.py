"""Optimizers of trees: their steps, schedules and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.example_libraries import optimizers
from effax.ir.errors import BadArgument, IllTyped

PARAMS = {"w": jnp.array([[1.0, -2.0], [3.0, 0.5]]), "b": (jnp.float32(0.1),)}

STEPS: dict[str, tuple[Any, list[float]]] = {
    "sgd": (optimizers.sgd(0.1), [0.1463, 0.7225, -1.9434, 2.9921, 0.2458]),
    "momentum": (optimizers.momentum(0.1, 0.9), [0.2047, 0.3792, -1.8717, 2.9821, -0.0567]),
    "nesterov": (optimizers.nesterov(0.1, 0.9), [0.2589, 0.1556, -1.8216, 2.9759, -0.1107]),
    "adagrad": (optimizers.adagrad(0.1), [0.1728, 0.9301, -1.9298, 2.9297, 0.4308]),
    "rmsprop": (optimizers.rmsprop(0.1), [1.2343, 0.1263, -0.8969, 1.8691, 0.0006]),
    "rmsprop_momentum": (
        optimizers.rmsprop_momentum(0.1),
        [2.7998, -0.7548, 0.608, 0.2762, -0.4555],
    ),
    "adam": (optimizers.adam(0.1), [0.489, 0.599, -1.5994, 2.5997, 0.1073]),
    "adamax": (optimizers.adamax(0.1), [0.4183, 0.6164, -1.6404, 2.6433, 0.1399]),
    "sm3": (optimizers.sm3(0.1), [0.1728, 0.9301, -1.9557, 2.9642, 0.4308]),
}
"""Parameters after four steps, as JAX computes them."""


def loss(params: Any) -> Any:
    return jnp.sum(jnp.tanh(params["w"]) ** 2) + jnp.cos(params["b"][0])


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str) -> None:
    (init, update, get_params), wanted = STEPS[name]
    state = init(PARAMS)
    for i in range(4):
        state = update(i, jax.grad(loss)(get_params(state)), state)
    state = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    found = np.concatenate([np.ravel(x) for x in jax.tree.leaves(get_params(state))])
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_states_pass_through_jit_and_scan() -> None:
    init, update, get_params = optimizers.adam(optimizers.exponential_decay(0.1, 3, 0.5))

    def step(state: Any, i: Any) -> Any:
        return update(i, jax.grad(loss)(get_params(state)), state), None

    scanned, _ = jax.jit(lambda state: jax.lax.scan(step, state, jnp.arange(4)))(init(PARAMS))
    state = init(PARAMS)
    for i in range(4):
        state, _ = step(state, i)
    for x, y in zip(jax.tree.leaves(scanned), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


SCHEDULES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (optimizers.constant(0.5), [0.5, 0.5, 0.5]),
    (optimizers.exponential_decay(1.0, 2, 0.25), [1.0, 0.5, 0.0625]),
    (optimizers.inverse_time_decay(1.0, 2, 1.0), [1.0, 2 / 3, 1 / 3]),
    (optimizers.inverse_time_decay(1.0, 2, 1.0, staircase=True), [1.0, 1.0, 1 / 3]),
    (optimizers.polynomial_decay(1.0, 2, 0.5, 2.0), [1.0, 0.625, 0.5]),
    (optimizers.piecewise_constant(jnp.array([0, 2]), jnp.array([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("schedule", "wanted"), SCHEDULES)
def test_schedules(schedule: Callable[[Any], Any], wanted: list[float]) -> None:
    for step, size in zip((0, 1, 4), wanted, strict=True):
        np.testing.assert_allclose(schedule(step), size, rtol=1e-6)


def test_norms() -> None:
    tree = [jnp.array([3.0]), (jnp.array([[4.0]]),)]
    assert optimizers.l2_norm(tree) == 5.0
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)[0], [0.6], rtol=1e-6)
    np.testing.assert_allclose(optimizers.clip_grads(tree, 7.0)[0], [3.0])


def test_wrong_arguments() -> None:
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(IllTyped, match="another structure"):
        update(0, [jnp.ones(2)], init((jnp.ones(2),)))
    with pytest.raises(BadArgument, match="step size"):
        optimizers.sgd(jnp.ones(2))
    with pytest.raises(BadArgument, match="one value more"):
        optimizers.piecewise_constant(jnp.array([1]), jnp.array([1.0]))
    with pytest.raises(BadArgument, match="JoinPoint"):
        optimizers.pack_optimizer_state([1.0])
