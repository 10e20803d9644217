"""Scaled dot-product attention has the values of JAX, with masks, windows, lengths and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import nn
from effax.ir.errors import BadArgument, IllTyped

jax: Any = effax
attention: Any = nn.dot_product_attention
KEYS = effax.random.split(effax.random.PRNGKey(0), 4)
Q = effax.random.normal(KEYS[0], (2, 4, 4, 3))
K, V = [effax.random.normal(key, (2, 5, 2, 3)) for key in KEYS[1:3]]
BIAS = effax.random.normal(KEYS[3], (1, 4, 4, 5))
LENGTHS = {
    "query_seq_lengths": jnp.array([2, 4]),
    "key_value_seq_lengths": jnp.array([3, 5]),
}

# Sums of results, times 0, 1, 2 along the last axis, and of derivatives by the queries: jax 0.12.
OF_JAX: list[tuple[dict[str, Any], float, float]] = [
    ({}, 6.471152, 9.926162),
    ({"bias": BIAS}, 5.035285, 4.890152),
    ({"mask": BIAS > -1}, 5.7474647, 5.9071693),
    ({"is_causal": True}, 18.994213, 28.503712),
    ({"scale": 0.3, "local_window_size": (1, 1)}, 8.551156, 7.8291206),
    (LENGTHS, 10.796902, 16.070244),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "value", "derivative"), OF_JAX)
def test_values_and_derivatives(options: Any, value: float, derivative: float) -> None:
    made = jax.jit(lambda q: attention(q, K, V, **options))(Q)
    assert float((made * jnp.arange(3.0)).sum()) == pytest.approx(value, rel=1e-5)
    grad = jax.grad(lambda q: (attention(q, K, V, **options) ** 2).sum())(Q)
    assert float((grad * jnp.arange(3.0)).sum()) == pytest.approx(derivative, rel=1e-5)


def test_the_batch_may_be_left_out() -> None:
    made, residual = attention(Q[0], K[0], V[0], return_residual=True)
    np.testing.assert_allclose(made, attention(Q, K, V)[0], rtol=1e-6)
    assert residual.shape == (4, 4)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(IllTyped, match="query, key and value do not fit"):
        attention(Q, K, V[:, :3])
    with pytest.raises(IllTyped, match="a mask has booleans"):
        attention(Q, K, V, mask=BIAS)
    with pytest.raises(IllTyped, match="one length a batch element"):
        attention(Q, K, V, query_seq_lengths=jnp.array([1]))
    with pytest.raises(BadArgument, match="unknown implementation"):
        attention(Q, K, V, implementation="other")


@pytest.mark.slow
def test_blocks_of_queries_have_the_values_and_linear_memory() -> None:
    keys = effax.random.split(effax.random.key(1), 4)
    q, k, v = (effax.random.normal(key, (2, 200, 2, 4)) for key in keys[:3])
    options = {
        "mask": effax.random.bernoulli(keys[3], 0.8, (2, 1, 200, 200)),
        "is_causal": True,
        "local_window_size": (60, 10),
        "query_seq_lengths": jnp.array([150, 200]),
    }

    def loss(implementation: str | None) -> Any:
        def total(*xs: effax.Array) -> effax.Array:
            made = attention(*xs, implementation=implementation, **options)
            return jnp.sum(made**2)

        return effax.jit(effax.value_and_grad(total, argnums=(0, 1, 2)))(q, k, v)

    leaves = zip(effax.tree.leaves(loss("cudnn")), effax.tree.leaves(loss(None)), strict=True)
    for x, y in leaves:
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-4)

    def memory(n: int) -> int:
        def total(x: effax.Array) -> effax.Array:
            made = attention(x, x, x, implementation="cudnn")
            assert isinstance(made, effax.Array)
            return jnp.sum(made)

        compiled = effax.jit(effax.grad(total)).lower(jnp.zeros((1, n, 1, 16))).compile()
        return int(compiled.memory_analysis().temp_size_in_bytes)

    assert memory(1024) < 3 * memory(512)
