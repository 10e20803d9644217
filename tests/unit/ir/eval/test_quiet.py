"""Functions of arrays without NumPy's warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.eval.quiet import quietly


def test_errors_of_numpy_are_ignored_within_another_call_too() -> None:
    with np.errstate(all="raise"):
        assert quietly(np.log, np.float32(0)) == -np.inf
        assert quietly(lambda x: quietly(np.log, x), np.float32(0)) == -np.inf
        assert jnp.log(jnp.zeros(())) == -np.inf
        with pytest.raises(FloatingPointError):
            np.log(np.float32(0))


@pytest.mark.parametrize("f", [lambda x: jnp.log(x - 1), lambda x: x * 0 + x * jnp.inf * 0])
def test_invalid_values_of_eager_operations_raise_where_they_are_watched(f: Any) -> None:
    x = jnp.zeros(())
    assert jnp.isnan(f(x))
    with jax.debug_nans(), pytest.raises(FloatingPointError):
        f(x)
    inf = jnp.full(3, jnp.inf)
    with jax.debug_nans(), pytest.raises(FloatingPointError):
        inf - inf
