"""Solutions of differential equations against closed forms, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.experimental.ode import odeint
from effax.ir.errors import BadArgument, IllTyped, TransformError
from effax.testing import check_grads

T = np.linspace(0.0, 2.0, 5)


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
def test_solutions() -> None:
    found = odeint(lambda y, t: -y * t, jnp.array([1.0, 2.0]), T)
    exact = np.array([1, 2]) * np.exp(-(T**2) / 2)[:, None]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    compiled = effax.jit(lambda y: odeint(lambda y, t: -y * t, y, T))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(compiled, found, rtol=1e-10)
    tree = odeint(lambda s, t: {"x": s["v"], "v": -s["x"]}, {"x": 1, "v": 0.0}, T)
    np.testing.assert_allclose(tree["x"], np.cos(T), rtol=1e-6)
    complex_ = odeint(lambda y, t: 1j * y, 1 + 0j, T)
    np.testing.assert_allclose(complex_, np.exp(1j * T), rtol=1e-6)
    batch = effax.vmap(lambda k: odeint(lambda y, t: -k * y, 1.0, T))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(batch, np.exp(-np.outer([1, 2], T)), rtol=1e-6)
    assert np.isnan(odeint(lambda y, t: -y, 1.0, T, mxstep=2)[1:]).all()
    step = lambda y, t: jnp.where((t > 1) & (t < 1.1), 10.0, 0.0)  # noqa: E731
    np.testing.assert_allclose(odeint(step, 0.0, T, hmax=0.01)[-1], 1, atol=1e-6)


@pytest.mark.slow
def test_gradients() -> None:
    """Those of the initial state, the times, the arguments, and what the function closes over."""

    def solution(y0: Any, t: Any, a: Any) -> Any:
        return odeint(lambda y, t, a: jnp.sin(y * a["w"]) * t + a["b"], y0, t, a)

    args = (np.array([1.0, 2.0]), T, {"w": np.array(0.7), "b": np.array([0.1, 0.2])})
    check_grads(solution, args, modes=["rev"], rtol=1e-4, atol=1e-4)
    last = lambda k: odeint(lambda y, t, n: -k * y * n, 1.0, T, 1)[-1]  # noqa: E731
    np.testing.assert_allclose(effax.grad(last)(0.3), -2 * np.exp(-0.6), rtol=1e-5)
    np.testing.assert_allclose(
        effax.jacrev(effax.grad(last))(jnp.array(0.3)), 4 * np.exp(-0.6), rtol=1e-5
    )


def test_bad_input() -> None:
    decay = lambda y, t: -y  # noqa: E731
    for t in (np.arange(3), np.zeros((2, 2)), np.zeros(0)):
        with pytest.raises(IllTyped, match="vector of times"):
            odeint(decay, 1.0, t)
    with pytest.raises(BadArgument, match="args of odeint"):
        odeint(lambda y, t, a: -y, 1.0, T, "rate")
    with pytest.raises(IllTyped, match="another structure"):
        odeint(lambda y, t: (y, y), 1.0, T)
    with pytest.raises(TransformError, match="no forward one"):
        effax.jvp(lambda k: odeint(lambda y, t: -k * y, 1.0, T), (1.0,), (1.0,))
