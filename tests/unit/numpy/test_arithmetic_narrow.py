"""Compare quotients of float8 with those of float32, rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import effax
import effax.numpy as jnp

VALUES = [-7.0, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.nan, -0.5, -0.0]


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
def test_quotients_of_float8_are_rounded_down_once(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    row = np.array(VALUES, dtype)
    a, b = np.repeat(row, len(row)), np.tile(row, len(row))
    with np.errstate(all="ignore"):
        expected = np.floor_divide(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    for function in (jnp.floor_divide, effax.jit(jnp.floor_divide)):
        found = np.asarray(function(jnp.asarray(a), jnp.asarray(b)))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.astype(float), expected.astype(float))
