"""Heavy operations and long loops outside of ``jit`` run compiled; others on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.arrays import compiled_evaluation

jax: Any = effax
pytestmark = pytest.mark.slow


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the primitives that run compiled, in order."""
    names: list[str] = []
    run = compiled_evaluation._run

    def recorded(program: Any, values: Any, operands: Any = ()) -> Any:
        names.append(program.jaxpr.eqns[0].prim.name)
        return run(program, values, operands)

    monkeypatch.setattr(compiled_evaluation, "_run", recorded)
    return names


def test_products_above_a_size(compiled: list[str]) -> None:
    a = np.random.default_rng(0).normal(size=(96, 96)).astype(np.float32)
    x, small = jnp.asarray(a), jnp.asarray(a[:8, :8])
    np.testing.assert_array_equal(small @ small, a[:8, :8] @ a[:8, :8])
    assert not compiled
    np.testing.assert_allclose(x @ x, a @ a, rtol=1e-4, atol=1e-4)
    assert compiled == ["dot_general"]
    np.testing.assert_array_equal(x @ x, jax.jit(jnp.matmul)(x, x))
    slope = jax.grad(lambda x: jnp.sum(x @ x))(x)
    np.testing.assert_allclose(slope, a.sum(1) + a.sum(0)[:, None], rtol=1e-3, atol=1e-3)
    assert len(compiled) == 5
    spd = jnp.eye(256) + jnp.ones((256, 256))
    np.testing.assert_allclose(jnp.linalg.cholesky(spd), np.linalg.cholesky(spd), rtol=1e-3)
    assert compiled[-1] == "cholesky"


def test_long_loops(compiled: list[str]) -> None:
    total = jax.new_ref(jnp.zeros(2))

    def body(c: Any) -> Any:
        i, x = c
        total[i % 2] += x
        return i + 1, x * 0.5 + 1

    def count(n: int) -> Any:
        limit = jnp.asarray(n)
        return lax.while_loop(lambda c: c[0] < limit, body, (0, 1.0))

    assert int(count(10)[0]) == 10
    assert not compiled
    n = 5_000
    assert int(count(n)[0]) == n
    assert compiled == ["while"]
    assert int(count(10)[0]) == 10
    assert compiled == ["while", "while"]
    wanted = np.zeros(2, np.float32)
    for steps in (10, n, 10):
        x = np.float32(1)
        for i in range(steps):
            wanted[i % 2] += x
            x = x * np.float32(0.5) + np.float32(1)
    np.testing.assert_allclose(total[...], wanted, rtol=1e-6)


def test_scans(compiled: list[str]) -> None:
    rows = jax.new_ref(jnp.zeros((12_000, 1)))

    def body(c: Any, row: Any) -> tuple[Any, Any]:
        row[0] = c
        return c + 1.0, c

    last, ys = lax.scan(body, 0.0, rows)
    assert compiled == ["scan"]
    assert float(last) == 12_000
    np.testing.assert_array_equal(rows[:, 0], ys)
    lax.scan(body, 0.0, jax.new_ref(jnp.zeros((10, 1))))
    assert compiled == ["scan"]


def test_loops_with_side_effects_and_watched_values_are_interpreted(compiled: list[str]) -> None:
    seen: list[int] = []

    def body(i: Any) -> Any:
        jax.debug.callback(lambda i: seen.append(int(i)), i)
        return i + 1

    lax.while_loop(lambda i: i < 6_000, body, 0)
    assert len(seen) == 6_000
    with jax.debug_nans(True):
        lax.while_loop(lambda c: c[0] < 6_000, lambda c: (c[0] + 1, c[1] * 0.5), (0, 1.0))
    assert not compiled
