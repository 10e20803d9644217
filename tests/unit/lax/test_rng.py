"""XLA's generators of random numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped


def test_bits_are_a_function_of_the_state() -> None:
    state = jnp.arange(4, dtype=jnp.uint32)
    after, bits = lax.rng_bit_generator(state, (5, 7))
    compiled = effax.jit(lambda s: lax.rng_bit_generator(s, (5, 7)))(state)
    np.testing.assert_array_equal(np.asarray(after), np.asarray(compiled[0]))
    np.testing.assert_array_equal(np.asarray(bits), np.asarray(compiled[1]))
    with effax.enable_x64(True):
        wide, same = lax.rng_bit_generator(np.asarray(state).view(np.uint64), (5, 7))
    assert wide.dtype == np.uint64
    np.testing.assert_array_equal(np.asarray(same), np.asarray(bits))
    with pytest.raises(IllTyped, match="four words"):
        lax.rng_bit_generator(state[:2], (2,))


def test_bits_of_threefry_are_those_of_xla() -> None:
    state = jnp.array([0, 1, 2, 3], jnp.uint32)
    draw = partial(lax.rng_bit_generator, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    for dtype, expected in (
        ("uint8", [55, 248, 15]),
        ("uint16", [44087, 34808, 12303]),
        ("uint32", [2689575991, 2205648888, 150810639]),
    ):
        after, bits = draw(state, (3,), dtype)
        assert (after.tolist(), bits.tolist()) == ([0, 1, 4, 3], expected)
    with effax.enable_x64(True):
        after, wide = draw(state, (3,), "uint64")
    assert after.tolist() == [0, 1, 5, 3]
    assert wide.tolist()[0] == 9473189843108342839
    after, bits = draw(jnp.array([0, 1, 2**32 - 1, 3], jnp.uint32), (4,))
    assert after.tolist() == [0, 1, 1, 4]
    assert bits.tolist() == [2527578821, 3203141775, 869452973, 3597360905]


def test_uniform_numbers_differ_in_each_call() -> None:
    draw = effax.jit(lambda: lax.rng_uniform(2.0, 5.0, (100,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert (first != second).any()
    assert ((first >= 2) & (first < 5)).all()
    assert set(np.asarray(lax.rng_uniform(-1, 2, (200,))).tolist()) == {-1, 0, 1}
    with pytest.raises(IllTyped, match="two scalars"):
        lax.rng_uniform(0, 1.0, (2,))
