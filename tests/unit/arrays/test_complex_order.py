"""The order of complex numbers against NumPy's, nan and infinities included."""

from __future__ import annotations

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax

pytestmark = pytest.mark.slow

PARTS = (-1.0, 0.0, 2.0, np.inf, -np.inf, np.nan)
VALUES = np.array([complex(a, b) for a in PARTS for b in PARTS], np.complex64)
SMALL = VALUES[np.isfinite(VALUES)]
X, Y = (part.ravel() for part in np.meshgrid(VALUES, VALUES))


@pytest.mark.parametrize("name", ["maximum", "minimum", "less", "less_equal", "greater_equal"])
def test_comparisons_are_those_of_numpy(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(X, Y)
    for f in (getattr(jnp, name), jax.jit(getattr(jnp, name))):
        np.testing.assert_array_equal(np.nan_to_num(f(X, Y)), np.nan_to_num(expected))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sort", "argsort"])
@pytest.mark.parametrize("values", [VALUES, SMALL], ids=["nan", "finite"])
def test_reductions_and_sorts_are_those_of_numpy(name: str, values: np.ndarray) -> None:
    rows = np.random.default_rng(0).permutation(values)[: len(values) // 3 * 3].reshape(3, -1)
    expected = getattr(np, name)(rows, axis=1)
    found = getattr(jnp, name)(rows, axis=1)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.nan_to_num(found, nan=0), np.nan_to_num(expected, nan=0))


def test_extremes_over_axes_masks_and_no_elements() -> None:
    x = SMALL.reshape(3, 3)
    assert jax.jit(jnp.max)(x) == np.max(x) and jnp.max(x, (0, 1)) == np.max(x)
    assert jnp.min(np.zeros(0, np.complex64), initial=2j) == 2j
    assert jnp.max(x, where=x.real < 0, initial=-9) == np.max(x, where=x.real < 0, initial=-9)
    assert lax.cummax(jnp.array([1j, 1, 0])).tolist() == [1j, 1, 1]


def test_the_extreme_element_has_the_derivative() -> None:
    weights = jnp.array([1j, 2.0, 3.0])
    slope = jax.grad(lambda x: jnp.max(x * weights).real)(jnp.array([1.0, 2.0, 1.0]))
    assert slope.tolist() == [0.0, 2.0, 0.0]
