"""Ragged and scaled products, against loops over groups."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped, NotSupported

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(3, 2, 3, 4))
SIZES = np.array([[2, 0, 2], [0, 1, 4]])


Pair = tuple[tuple[int, ...], tuple[int, ...]]


def numbers(contract: Pair, batch: Pair, ragged: int, *group: int) -> lax.RaggedDotDimensionNumbers:
    return lax.RaggedDotDimensionNumbers((contract, batch), (ragged,), group)


@pytest.mark.slow
def test_each_kind_of_ragged_axis_is_a_loop_over_groups() -> None:
    kept = np.zeros((2, 5, 4))
    contracted, batch = np.zeros((3, 2, 3, 3)), np.zeros((2, 5, 5))
    for b in range(2):
        ends = np.cumsum(SIZES[b])
        for g in range(3):
            rows = slice(ends[g] - SIZES[b, g], ends[g])
            kept[b, rows] = X[b, rows] @ W[g, b]
            contracted[g, b] = X[b, rows].T @ X[b, rows]
    batch[0] = X[0] @ X[0].T
    cases = [
        (X, W, SIZES, numbers(((2,), (2,)), ((0,), (1,)), 1, 0), kept),
        (X, X, SIZES, numbers(((1,), (1,)), ((0,), (0,)), 1), contracted),
        (X, X, np.array([1, 0]), numbers(((2,), (2,)), ((0,), (0,)), 0), batch),
    ]
    for x, y, sizes, axes, expected in cases:
        for run in (lambda f: f, effax.jit):
            made = run(lambda x, y, n: lax.ragged_dot_general(x, y, n, axes))(x, y, sizes)  # noqa: B023
            np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-5, atol=1e-6)


def test_groups_that_do_not_fit_are_refused() -> None:
    x, w = jnp.ones((4, 2)), jnp.ones((3, 2, 2))
    with pytest.raises(IllTyped, match="number of groups"):
        lax.ragged_dot(x, w, jnp.array([1, 2]))
    with pytest.raises(IllTyped, match="sizes of groups"):
        lax.ragged_dot(x, w, jnp.ones(3))
    with pytest.raises(NotSupported, match="offset"):
        lax.ragged_dot(x, w, jnp.ones(3, int), group_offset=jnp.array(0))
    with pytest.raises(IllTyped, match="axis of groups"):
        lax.ragged_dot_general(x, w, jnp.ones(3, int), numbers(((1,), (1,)), ((), ()), 1, 0))


def test_scales_are_those_of_blocks() -> None:
    x, y, s = RNG.normal(size=(2, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=(2, 2))
    made = lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type="float32")
    np.testing.assert_allclose(np.asarray(made), (x * np.repeat(s, 2, 1)) @ y, rtol=1e-5)
    with pytest.raises(IllTyped, match="sizes of a scale"):
        lax.scaled_dot(x, y, lhs_scale=jnp.ones((2, 3)))
