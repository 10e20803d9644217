"""XLA does not end the process: what it aborts for is not lowered, or refused with an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError, LoweringError

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


HUGE = 2**62
SIZES = (2**31, 2**31, 2**31)
MAKERS: dict[str, Any] = {
    "zeros": lambda: jnp.zeros(SIZES),
    "full": lambda: jnp.full((2**32, 2**32), 2),
    "empty": lambda: jnp.empty((2**70,)),
    "zeros_like": lambda: jnp.zeros_like(jnp.ones(3), shape=SIZES),
    "broadcast_to": lambda: jnp.broadcast_to(1.0, SIZES).sum(),
    "operands": lambda: jnp.ones((2**40, 1)) * jnp.ones((1, 2**40)),
    "iota": lambda: lax.broadcasted_iota("int32", SIZES, 0),
    "one_hot": lambda: jax.nn.one_hot(jnp.arange(3), HUGE),
    "floats": lambda: jnp.arange(0.0, 1e30),
    "linspace": lambda: jnp.linspace(0, 1, HUGE),
    "eye": lambda: jnp.eye(2**40),
    "tile": lambda: jnp.tile(jnp.ones(3), SIZES),
    "repeat": lambda: jnp.repeat(jnp.ones(3), HUGE),
    "repeat to a length": lambda: jnp.repeat(
        jnp.ones(3), jnp.ones(3, int), total_repeat_length=HUGE
    ),
    "pad": lambda: jnp.pad(jnp.ones(3), HUGE),
    "nonzero": lambda: jnp.nonzero(jnp.ones(3), size=HUGE),
    "scan": lambda: lax.scan(lambda c, _: (c, c), 1.0, None, HUGE)[1],
    "empty_ref": lambda: jax.empty_ref(SIZES)[...],
    "fft": lambda: jnp.fft.fft(jnp.ones(3), HUGE),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_arrays_that_are_too_large_are_an_error(name: str, wrap: Any) -> None:
    with pytest.raises(EffaxError, match="an array is too large"):
        wrap(MAKERS[name])()


def test_types_that_are_too_large_are_traced() -> None:
    shape = jax.eval_shape(lambda: jnp.zeros(SIZES).sum(0)).shape
    assert shape == SIZES[1:]
    assert jnp.zeros((0, 3)).size == 0


@WRAPS
def test_narrow_dtypes_have_their_own_neutral_elements(wrap: Any) -> None:
    def extremes(x: Any) -> Any:
        y = x.astype("float8_e4m3fn")
        least, most = lax.reduce_max(y, (0,)), lax.reduce_min(y, (0,))
        return least.astype("float32"), most.astype("float32")

    assert [float(x) for x in wrap(extremes)(jnp.zeros(0))] == [-448, 448]
    every = wrap(lambda x: lax.reduce_and(x.astype("uint4"), (0,)).astype("int32"))
    assert int(every(jnp.zeros(0, "int32"))) == 15
    near = wrap(lambda x: lax.erfc(x.astype("float8_e4m3fn")).astype("float32"))(jnp.ones(2))
    np.testing.assert_allclose(near, 0.157, rtol=0.05)


@WRAPS
def test_bits_of_narrow_integers_are_read_as_another_dtype(wrap: Any) -> None:
    def read(x: Any, first: str, second: str) -> Any:
        bits = lax.bitcast_convert_type(x.astype(first), second)
        return bits.astype("int32")

    x = jnp.array([1, -1])
    assert wrap(lambda x: read(x, "int4", "uint4"))(x).tolist() == [1, 15]
    assert wrap(lambda x: read(x, "int8", "int4"))(x).tolist() == [[1, 0], [-1, -1]]
    assert int(wrap(lambda x: read(x, "int4", "uint8"))(x)) == 0xF1
    assert wrap(lambda x: read(x, "uint4", "uint2"))(x).tolist() == [[1, 0], [3, 3]]


@pytest.mark.slow
@WRAPS
@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "float16"])
def test_narrow_floats_are_summed_in_a_wide_dtype(wrap: Any, dtype: str) -> None:
    x = jnp.asarray([1, 2, 3, 1, 2, 3, 1, 2]).astype(dtype)
    expected = np.cumsum(np.asarray(x, "float32")).astype(x.dtype).astype("float32")
    total, running = wrap(lambda x: (x.sum(), lax.cumsum(x, 0)))(x)
    assert float(total) == expected[-1]
    assert float(wrap(lambda x: x @ jnp.ones_like(x))(x)) == expected[-1]
    np.testing.assert_array_equal(np.asarray(running, "float32"), expected)
