"""Contractions of narrow floats run compiled, with results in float32 and several batch axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

jax: Any = effax
xlax: Any = lax


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize("n_batch", [0, 1, 2, 3])
@pytest.mark.parametrize("wanted", [None, "float32", "float64"])
def test_dot_general_of_narrow_floats(dtype: str, n_batch: int, wanted: str | None) -> None:
    batch = (2, 3, 2)[:n_batch]
    rng = np.random.default_rng(0)
    a = jnp.asarray(rng.integers(-2, 3, (*batch, 3, 4)), "float32").astype(dtype)
    b = jnp.asarray(rng.integers(-2, 3, (*batch, 4, 5)), "float32").astype(dtype)
    axes = tuple(range(n_batch))
    dims = (((n_batch + 1,), (n_batch,)), (axes, axes))
    with effax.enable_x64():
        f = jax.jit(lambda a, b: xlax.dot_general(a, b, dims, preferred_element_type=wanted))
        found = f(a, b)
    assert found.dtype == (wanted or dtype)
    expected = np.matmul(np.asarray(a, np.float64), np.asarray(b, np.float64))
    np.testing.assert_array_equal(np.asarray(found, np.float64), expected)


def test_operands_of_two_batch_axes_are_widened_on_cpu_only() -> None:
    x = jnp.ones((2, 3, 4, 4), "bfloat16")

    def f(x: Any) -> Any:
        dims = (((3,), (2,)), ((0, 1), (0, 1)))
        return xlax.dot_general(x, x, dims, preferred_element_type="float32")

    lowered = jax.jit(f).lower(x)
    assert (
        "(tensor<2x3x4x4xbf16>, tensor<2x3x4x4xbf16>) -> tensor<2x3x4x4xf32>" in lowered.as_text()
    )
    compiled = lowered.compile().program.module.text
    assert "(tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>" in compiled


def test_a_reference_beside_such_a_contraction() -> None:
    r = jax.new_ref(jnp.zeros((2, 2, 3, 5)))
    a, b = jnp.ones((2, 2, 3, 4), "bfloat16"), jnp.ones((2, 2, 4, 5), "bfloat16")

    def f(r: Any, a: Any, b: Any) -> None:
        r[...] += xlax.dot_general(
            a, b, (((3,), (2,)), ((0, 1), (0, 1))), preferred_element_type="float32"
        )

    step = jax.jit(f)
    for _ in range(2):
        step(r, a, b)
    np.testing.assert_array_equal(r[...], np.full((2, 2, 3, 5), 8))
