"""``r[i] += v`` and ``r[i] -= v``: one accumulation; a read, a sum and a write otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.effects import Accum
from effax.ir.errors import EffaxError

jax: Any = effax
F = Callable[..., Any]


def names(f: F, *args: Any) -> list[str]:
    return [e.prim.name for e in jax.make_jaxpr(f)(*args).jaxpr.eqns]


def at_scalar(r: Any, i: Any, x: Any) -> None:
    r[i] += x


def difference(r: Any, i: Any, x: Any) -> None:
    r[i, ...] -= x


def of_number(r: Any, i: Any, x: Any) -> None:
    r[i] -= 2


def at_mask(r: Any, i: Any, x: Any) -> None:
    r[np.array([True, False, True])] += x


def in_view(r: Any, i: Any, x: Any) -> None:
    r.at[1:][i] -= x


def by_hand(r: Any, i: Any, x: Any) -> None:
    part = r[i]
    part += x
    r[i] = part


@pytest.mark.parametrize("f", [at_scalar, difference, of_number, at_mask, in_view, by_hand])
def test_one_accumulation(f: F) -> None:
    found = jax.make_jaxpr(f)(jax.new_ref(jnp.arange(3.0)), 1, jnp.float32(0.5))
    assert found.jaxpr.eqns[-1].prim.name == "addupdate"
    assert [e.rank for e in found.jaxpr.effects] == [Accum.rank]
    eager, jitted = (jax.new_ref(jnp.arange(3.0)) for _ in range(2))
    f(eager, 1, jnp.float32(0.5))
    jax.jit(f)(jitted, 1, jnp.float32(0.5))
    np.testing.assert_array_equal(eager[...], jitted[...])


def test_it_is_one_equation() -> None:
    assert names(at_scalar, jax.new_ref(jnp.zeros(3)), 1, jnp.float32(1)) == ["addupdate"]
    unsigned = jax.new_ref(jnp.zeros(3, "uint8") + 1)
    jax.jit(of_number)(unsigned, 0, 0)
    np.testing.assert_array_equal(unsigned[...], [255, 1, 1])


def repeated(r: Any, x: Any) -> None:
    r[jnp.array([0, 0])] += x


def traced_positions(r: Any, x: Any) -> None:
    r[jnp.argsort(jnp.stack([x, x]))] += x


def changed_meanwhile(r: Any, x: Any) -> None:
    def change() -> Any:
        r[0] = 5.0
        return x

    r[0] += change()


def augmented_twice(r: Any, x: Any) -> None:
    part = r[0]
    part += x
    part += x
    r[0] = part


def elsewhere(r: Any, x: Any) -> None:
    part = r[0]
    part += x
    r[1] = part


@pytest.mark.parametrize(
    "f", [repeated, traced_positions, changed_meanwhile, augmented_twice, elsewhere]
)
def test_other_sums_are_written(f: F) -> None:
    assert "swap" in names(f, jax.new_ref(jnp.zeros(2)), jnp.float32(1))
    eager, jitted = (jax.new_ref(jnp.arange(2.0)) for _ in range(2))
    f(eager, jnp.float32(1))
    jax.jit(f)(jitted, jnp.float32(1))
    np.testing.assert_array_equal(eager[...], jitted[...])


def test_a_sum_of_another_dtype_is_rounded_once() -> None:
    def f(r: Any, x: Any) -> None:
        r[0] += x

    r = jax.new_ref(jnp.ones(1, "bfloat16"))
    assert "swap" in names(f, r, jnp.float32(1))
    assert names(f, jax.new_ref(jnp.ones(1, bool)), True)[-1] == "swap"


def test_a_value_that_was_read_stays_a_read() -> None:
    def f(r: Any, x: Any) -> Any:
        part = r[0]
        before = part
        part += x
        r[0] = part
        return before, part

    r = jax.new_ref(jnp.ones(2))
    assert str(jax.make_jaxpr(f)(r, 2.0).jaxpr.effects) == "{read 0, accum 0}"
    assert [float(v) for v in jax.jit(f)(r, 2.0)] == [1, 3]
    np.testing.assert_array_equal(r[...], [3, 1])


@pytest.mark.parametrize("value", [1.5, jnp.ones(5), "text", 2**40])
def test_errors_are_those_of_the_write(value: Any) -> None:
    r = jax.new_ref(jnp.zeros(3, int))

    def error(f: F) -> Any:
        with pytest.raises((EffaxError, TypeError, OverflowError)) as caught:
            f(r)
        return type(caught.value)

    def augmented(r: Any) -> None:
        r[...] += value

    def written(r: Any) -> None:
        r[...] = r[...] + value

    assert error(augmented) == error(jax.jit(augmented)) == error(jax.jit(written))
    np.testing.assert_array_equal(r[...], [0, 0, 0])


def test_batch_elements_and_devices_add_to_a_shared_reference() -> None:
    r = jax.new_ref(jnp.zeros(3))

    def element(i: Any, x: Any) -> Any:
        r[i] += x
        r[0] -= 1.0
        return x

    jax.vmap(element)(jnp.array([1, 1, -1]), jnp.arange(3.0))
    jax.jit(jax.vmap(element))(jnp.array([1, 1, -1]), jnp.arange(3.0))
    np.testing.assert_array_equal(r[...], [-6, 2, 4])

    def read_first(x: Any) -> Any:
        r[0] = r[0] + x
        return x

    with pytest.raises(EffaxError, match="not batched"):
        jax.vmap(read_first)(jnp.arange(3.0))


def test_its_derivatives() -> None:
    def f(x: Any) -> Any:
        r = jax.new_ref(jnp.array([1.0, 2.0]))
        r[0] += x * x
        r[1] -= jnp.sin(x) * r[0]
        return jnp.sum(jax.freeze(r))

    wanted = 2 * 3.0 - (np.cos(3.0) * 10 + np.sin(3.0) * 6)
    for run in (jax.grad(f), jax.jit(jax.jacfwd(f))):
        np.testing.assert_allclose(run(3.0), wanted, rtol=1e-5)
