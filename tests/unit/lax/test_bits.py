"""Bits read as elements of another width."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped, NotSupported

DTYPES = ["int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "complex64"]
BYTES = np.random.default_rng(0).integers(0, 256, (2, 3, 8), np.uint8)


@pytest.mark.parametrize("before", DTYPES)
@pytest.mark.parametrize("after", DTYPES)
def test_a_view_has_the_bytes_of_the_array(before: str, after: str) -> None:
    x = jnp.asarray(np.ascontiguousarray(BYTES).view(jnp.dtype(before)))
    for run in (lambda f: f, effax.jit):
        made = run(lambda x: x.view(after))(x)
        assert made.dtype == jnp.dtype(after)
        assert np.asarray(made).tobytes() == np.asarray(x).tobytes()


def test_bits_of_parts_are_along_the_last_axis() -> None:
    x = jnp.array([[1.0, -2.0]])
    parts = lax.bitcast_convert_type(x, jnp.int8)
    assert parts.shape == (1, 2, 4)
    assert parts.dtype == jnp.int8
    np.testing.assert_array_equal(np.asarray(lax.bitcast_convert_type(parts, jnp.float32)), x)
    each = effax.vmap(lambda v: lax.bitcast_convert_type(v, jnp.int8), in_axes=1)(x)
    np.testing.assert_array_equal(np.asarray(each), np.swapaxes(np.asarray(parts), 0, 1))


def test_bits_that_are_no_whole_elements_are_refused() -> None:
    with pytest.raises(IllTyped, match="joins"):
        lax.bitcast_convert_type(jnp.zeros((3,), jnp.int8), jnp.int32)
    with pytest.raises(IllTyped, match="whole elements"):
        jnp.zeros(3, jnp.int8).view(jnp.int32)
    with pytest.raises(IllTyped, match="last axis"):
        jnp.array(1.0).view(jnp.int8)
    with pytest.raises(NotSupported, match="no type"):
        jnp.ones(2).view(jnp.int32, np.matrix)  # type: ignore[arg-type]  # refused
    assert jnp.ones(2).view().dtype == jnp.float32
