"""XLA's generators of random numbers."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped, NotSupported


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
    with pytest.raises(NotSupported, match="Threefry"):
        lax.rng_bit_generator(state, (2,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    with pytest.raises(IllTyped, match="four words"):
        lax.rng_bit_generator(state[:2], (2,))


def test_uniform_numbers_differ_in_each_call() -> None:
    draw = effax.jit(lambda: lax.rng_uniform(2.0, 5.0, (100,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert (first != second).any()
    assert ((first >= 2) & (first < 5)).all()
    assert set(np.asarray(lax.rng_uniform(-1, 2, (200,))).tolist()) == {-1, 0, 1}
    with pytest.raises(IllTyped, match="two scalars"):
        lax.rng_uniform(0, 1.0, (2,))
