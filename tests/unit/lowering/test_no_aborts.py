"""XLA does not end the process: what it aborts for is not lowered, or refused with an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import LoweringError

jax: Any = effax
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])


def count_down(x: Any) -> Any:
    return lax.while_loop(lambda c: jnp.any(c > 0), lambda c: c - 1, x)


@WRAPS
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_a_loop_whose_carries_are_empty(wrap: Any, shape: tuple[int, ...]) -> None:
    x = jnp.zeros(shape, "int32")
    assert wrap(count_down)(x).shape == shape
    assert wrap(jax.vmap(count_down))(jnp.zeros((2, *shape), "int32")).shape == (2, *shape)
    outer = wrap(lambda x: lax.scan(lambda c, _: (count_down(c), None), x, None, length=2)[0])
    assert outer(x).shape == shape
    pair = wrap(lambda x: lax.while_loop(lambda c: jnp.any(c[0] > 0), lambda c: c, (x, x[:0])))
    assert [y.size for y in pair(x)] == [0, 0]


@WRAPS
def test_gcd_and_lcm_of_empty_arrays(wrap: Any) -> None:
    x = jnp.zeros(0, "int32")
    assert wrap(jnp.gcd)(x, x).shape == wrap(jnp.lcm)(x, x).shape == (0,)


@WRAPS
def test_a_loop_with_one_carry_that_is_not_empty_runs(wrap: Any) -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (x, 0))[1]

    assert int(wrap(f)(jnp.zeros(0))) == 3


@pytest.mark.parametrize("dtype", ["float6_e2m3fn", "float6_e3m2fn"])
def test_floats_of_six_bits_are_not_compiled(dtype: str) -> None:
    def f(x: Any) -> Any:
        return (x.astype(dtype) + 1).astype("float32")

    np.testing.assert_array_equal(f(jnp.ones(2)), [2, 2])
    with pytest.raises(LoweringError, match="does not support this dtype"):
        jax.jit(f)(jnp.ones(2))


@pytest.mark.parametrize("shape", [(2**31, 2**31), (2**31, 2**31, 2**31), (2**32, 2**32)])
def test_sizes_that_overflow_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(LoweringError, match="too large for XLA"):
        jax.jit(lambda x: jnp.broadcast_to(x, shape).sum())(1.0)
