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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int32"])
def test_leading_zeros_and_high_bits_are_those_of_python_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    a, b = np.random.default_rng(0).integers(info.min, info.max, (2, 50), dtype)
    bits = info.bits
    zeros = [bits - (int(x) % (1 << bits)).bit_length() for x in a]
    np.testing.assert_array_equal(np.asarray(lax.clz(jnp.asarray(a))), zeros)
    high = [(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)]
    for run in (lambda f: f, effax.jit):
        np.testing.assert_array_equal(np.asarray(run(lax.mulhi)(a, b)), np.array(high, dtype))


def test_high_bits_of_64_bit_integers() -> None:
    with effax.enable_x64(True):
        x = jnp.array([2**63 + 5, 2**64 - 1], jnp.uint64)
        assert np.asarray(lax.mulhi(x, x)).tolist() == [int(v) ** 2 >> 64 for v in np.asarray(x)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", [(8, 7), (2, 0)])
def test_reduced_precision_is_that_of_xla(dtype: str, bits: tuple[int, int]) -> None:
    scale = 10.0 ** np.random.default_rng(0).integers(-6, 5, 300)
    numbers = np.append(np.random.default_rng(1).normal(size=300) * scale, [np.nan, np.inf, -0.0])
    x = jnp.asarray(numbers, dtype)
    eager = np.asarray(lax.reduce_precision(x, *bits)).astype(np.float64)
    compiled = effax.jit(lambda x: lax.reduce_precision(x, *bits))(x)
    np.testing.assert_array_equal(eager, np.asarray(compiled).astype(np.float64))
    slope = effax.grad(lambda x: lax.reduce_precision(x, *bits).astype(np.float32) * 1.1)(x[0])
    assert float(slope) == float(lax.reduce_precision(jnp.asarray(1.1, dtype), *bits))


def test_reduced_precision_equals_a_narrower_dtype() -> None:
    x = np.random.default_rng(0).normal(size=300).astype(np.float32)
    narrow = np.asarray(lax.reduce_precision(x, 8, 7))
    np.testing.assert_array_equal(narrow, x.astype(jnp.bfloat16).astype(np.float32))
    with pytest.raises(IllTyped, match="too few bits"):
        lax.reduce_precision(1.0, 0, 3)
