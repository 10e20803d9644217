"""Parameters of JAX's functions, and results at the edges of their domains."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, EffaxError

xnp: Any = jnp


@pytest.mark.parametrize(
    "make",
    [
        lambda s: jnp.zeros(4, out_sharding=s),
        lambda s: jnp.full_like(jnp.zeros(4), 2, out_sharding=s),
        lambda s: jnp.arange(4, out_sharding=s),
        lambda s: jnp.asarray([1, 2], out_sharding=s),
        lambda s: jnp.repeat(jnp.arange(2), 2, out_sharding=s),
        lambda s: jnp.reshape(jnp.zeros((2, 2)), 4, out_sharding=s),
        lambda s: jnp.ravel(jnp.zeros((2, 2)), out_sharding=s),
        lambda s: jnp.broadcast_to(0.0, 4, out_sharding=s),
        lambda s: jnp.bincount(jnp.arange(4), length=4, out_sharding=s),
        lambda s: jnp.histogram(jnp.arange(4.0), 4, out_sharding=s)[0],
        lambda s: jnp.percentile(jnp.arange(4.0), jnp.arange(4.0), out_sharding=s),
    ],
)
def test_results_have_the_sharding(make: Any) -> None:
    sharding = jax.sharding.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    assert make(sharding).sharding == sharding


def test_a_device_or_a_sharding() -> None:
    mesh = jax.make_mesh((1,), ("i",))
    with pytest.raises(BadArgument, match="zeros takes a place once"):
        jnp.zeros(
            4, device=jax.devices()[0], out_sharding=jax.sharding.NamedSharding(mesh, jax.P("i"))
        )


def test_weighted_percentiles_without_nan() -> None:
    x, w = np.array([3.0, np.nan, 1.0, 2.0], np.float32), np.array([1, 5, 2, 1], np.float32)
    wanted = np.nanpercentile(x, [20, 50, 90], method="inverted_cdf", weights=w)
    found = jnp.nanpercentile(x, jnp.array([20, 50, 90]), method="inverted_cdf", weights=w)
    np.testing.assert_array_equal(found, wanted)


def test_pad_refuses_options_of_other_modes() -> None:
    with pytest.raises(BadArgument, match="mode 'edge'"):
        jnp.pad(jnp.arange(3), 1, "edge", constant_values=0)
    with pytest.raises(BadArgument, match="mode 'constant'"):
        jnp.pad(jnp.arange(3), 1, constant_value=0)


def test_a_copy_outlives_the_original() -> None:
    x = jnp.arange(3)
    x.astype(x.dtype, copy=True).delete()
    assert x.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_expm1_at_complex_zeros_is_positive() -> None:
    x = np.array([complex(-0.0, 0.0), complex(-0.0, -0.0)], np.complex64)
    for f in (jnp.expm1, jax.jit(jnp.expm1)):
        y = np.asarray(f(x))
        assert (*np.signbit(y.real), *np.signbit(y.imag)) == (False, False, False, True)


@pytest.mark.slow
def test_powers_of_positive_numbers_have_the_sign_of_their_angle() -> None:
    x = np.array([complex(2, -0.0), complex(2, -0.0), complex(0.5, 0.0), complex(1, -0.0)])
    y = np.array([1, 2, -1, complex(0, -1)])
    for f in (jnp.power, jax.jit(jnp.power)):
        assert np.signbit(np.asarray(f(x, y)).imag).all()


@pytest.mark.slow
def test_i0_is_even() -> None:
    assert jax.grad(jnp.i0)(0.0) == 0.0
    assert jax.grad(jax.grad(jnp.i0))(0.0) == 0.5


@pytest.mark.slow
def test_sizes_of_unravel_index_may_be_traced() -> None:
    at = jnp.array([5, 70, -70])
    found = jax.jit(jnp.unravel_index)(at, (3, 0 + 3))
    for x, y in zip(found, jnp.unravel_index(at, (3, 3)), strict=True):
        np.testing.assert_array_equal(x, y)


def test_types_of_traced_and_of_opaque_values() -> None:
    assert jax.jit(lambda x: jnp.ones(int(jnp.iscomplexobj([x, 1]))))(1j).shape == (1,)
    key = jax.random.key(0)
    assert xnp.isclose(key, key) and not xnp.isclose(key, jax.random.key(1))
    assert jnp.isscalar(np.array(2)) and xnp.zeros(np.array(2)).shape == (2,)
    assert (
        type(jnp.finfo("complex64").eps) is float and xnp.finfo("bfloat16").eps.dtype.itemsize == 2
    )


def test_products_are_in_the_order_of_the_result() -> None:
    program = jax.make_jaxpr(lambda x, y: jnp.einsum("ijk,kl->ijl", x, y))
    assert "transpose" not in str(program(jnp.ones((2, 2, 2)), jnp.ones((2, 2))))


class Boxed(NamedTuple):
    value: jax.Array

    def __rmul__(self, other: Any) -> str:  # type: ignore[override]  # of arrays
        return "boxed"


def test_operators_defer_to_classes_of_tuples() -> None:
    x: Any = jnp.ones(2)
    assert operator.mul(x, Boxed(x)) == "boxed"
    with pytest.raises(EffaxError):
        x * (1, 2)


def test_vectorize_checks_ranks() -> None:
    f = jnp.vectorize(jnp.add, signature="(),()->()")
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="vectorize"):
        f(jnp.zeros((2, 2)), jnp.zeros(2))


@pytest.mark.slow
def test_elements_of_sets_that_occur_once() -> None:
    x, y = np.array([1, 1, 3]), np.array([3, 4])
    np.testing.assert_array_equal(jnp.setxor1d(x, y, True), np.setxor1d(x, y, True))
    assert jax.jit(lambda: jnp.setxor1d(jnp.zeros(0), y, True, size=2))().tolist() == [3, 4]
