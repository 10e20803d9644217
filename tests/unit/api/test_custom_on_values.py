"""Python's control flow in functions with rules, and in their rules, where values are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import ConcretizationError

jax: Any = effax


def pushed() -> Any:
    """``2x`` or ``3x`` by the sign of ``x``; its rule says 20 or 30."""

    @effax.custom_jvp
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x * 3

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return f(x), (20 if x > 0 else 30) * dx

    return f


def pulled() -> Any:
    """The same in reverse; both rules look."""

    @effax.custom_vjp
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x * 3

    def fwd(x: Any) -> Any:
        return f(x), (x if x > 0 else -x, x)

    def bwd(res: Any, ct: Any) -> Any:
        size, x = res
        assert size > 0
        return ((20 if x > 0 else 30) * ct,)

    f.defvjp(fwd, bwd)
    return f


@pytest.mark.parametrize("make", [pushed, pulled])
def test_values_decide_in_functions_and_rules(make: Any) -> None:
    f = make()
    for x, y, slope in ((1.5, 3.0, 20.0), (-1.0, -3.0, 30.0)):
        assert float(f(x)) == y
        assert [float(v) for v in jax.value_and_grad(f)(x)] == [y, slope]
        y_found, pullback = jax.vjp(f, x)
        assert (float(y_found), float(pullback(1.0)[0])) == (y, slope)
        # The function of a trace on values, in a function of such a trace.
        assert float(jax.grad(lambda x, f=f: f(f(x) + 1.0 - f(x)) + f(x))(-x * x)) == 30.0


def test_second_derivatives() -> None:
    f = pushed()
    assert float(jax.grad(jax.grad(lambda x: f(x) * x))(1.0)) == 40.0
    assert float(jax.grad(jax.grad(lambda x: f(x) * x))(-1.0)) == 60.0


def test_values_of_closures_and_of_what_was_computed() -> None:
    f, scale = pushed(), jnp.float32(-2.0)

    @effax.custom_jvp
    def g(x: Any) -> Any:
        y = jnp.sin(x) * scale
        return y if y > 0 else -y

    g.defjvp(lambda p, t: (g(*p), t[0] * (5.0 if scale < 0 else 7.0)))
    found = jax.grad(lambda x: g(f(x) * 2.0))(0.25)
    assert float(found) == 5.0 * 2.0 * 20.0


def test_batched_and_compiled_functions_have_no_values() -> None:
    for f in (pushed(), pulled()):
        with pytest.raises(ConcretizationError, match=r"depends on x(.|\n)*lax\.cond"):
            jax.jit(jax.grad(f))(1.0)
        with pytest.raises(ConcretizationError, match=r"depends on x"):
            jax.vmap(f)(jnp.ones(2))
        # What is not batched has one.
        found = jax.vmap(jax.grad(lambda x, y, f=f: f(x) * y), (None, 0))(1.0, jnp.ones(2))
        np.testing.assert_allclose(found, [20.0, 20.0])


def test_a_call_is_not_taken_for_one_of_other_values() -> None:
    f = pushed()
    found = jax.grad(lambda x: f(x) + f(-x))(1.0)
    assert float(found) == 20.0 - 30.0
    assert [float(jax.grad(f)(x)) for x in (1.0, -1.0, 1.0)] == [20.0, 30.0, 20.0]


def test_a_rule_that_reads_a_value_may_call_its_function_elsewhere() -> None:
    @effax.custom_jvp
    def f(x: Any) -> Any:
        return x * 2

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return f(x), f(-x) * dx if x > 0 else dx

    # d f(x) = f(-x) where x > 0, else 1.
    assert float(jax.grad(f)(1.0)) == -2.0
    assert float(jax.grad(f)(-1.0)) == 1.0
    assert float(jax.grad(jax.grad(f))(1.0)) == -1.0


def test_effects_happen_once_though_values_are_asked_for() -> None:
    seen: list[float] = []

    @effax.custom_vjp
    def f(x: Any) -> Any:
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return x * 2 if x > 0 else x

    def fwd(x: Any) -> Any:
        jax.debug.callback(lambda v: seen.append(10 * float(v)), x)
        return x * 2, jnp.sin(x)

    f.defvjp(fwd, lambda s, ct: (ct * 3.0 if s > 0 else ct,))
    assert float(jax.grad(f)(1.0)) == 3.0
    assert seen == [10.0]
    r = jax.new_ref(1.0)

    def adds(x: Any) -> Any:
        r[...] += 1.0
        y = f(x)
        return y * (2.0 if r[...] > 1.5 else 1.0)

    jax.grad(adds)(1.0)
    assert float(r[...]) == 2.0
