from __future__ import annotations

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import extend
from effax.ir.errors import IllTyped


def f(x, r):  # type: ignore[no-untyped-def]
    r[0] += x
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + r[i], x), 2.0


def test_a_program_runs_now_and_in_a_trace() -> None:
    ref = jax.new_ref(jnp.arange(3.0))
    closed = jax.make_jaxpr(f)(0.5, ref)
    expected = f(0.5, jax.new_ref(jnp.arange(3.0)))[0]
    found, two = extend.eval_jaxpr(closed, jnp.float32(0.5), ref)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert two == 2.0
    assert ref[0] == 0.5
    again = jax.make_jaxpr(lambda x, r: extend.eval_jaxpr(closed, x, r))(jnp.float32(0.5), ref)
    assert [e.prim for e in again.jaxpr.eqns] == [e.prim for e in closed.jaxpr.eqns]
    assert jax.jit(lambda x, r: extend.eval_jaxpr(closed, x, r))(jnp.float32(0.5), ref)[1] == 2.0


def test_an_equation_is_applied_to_other_arguments_whatever_it_is() -> None:
    closed = jax.make_jaxpr(jax.jit(jnp.cos))(0.0)
    (eqn,) = closed.jaxpr.eqns
    assert extend.eval_eqn(eqn, 0.0) == [1.0]
    with pytest.raises(IllTyped):
        extend.eval_eqn(eqn, 0.0, 1.0)


def test_captured_values_come_with_a_closed_program() -> None:
    ref = jax.new_ref(2.0)
    closed = jax.make_jaxpr(lambda x: x * ref[...])(1.0)
    assert extend.eval_jaxpr(closed, 3.0) == [6.0]
    with pytest.raises(IllTyped, match="number of arguments"):
        extend.eval_jaxpr(closed.jaxpr, 3.0)
