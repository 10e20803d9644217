"""Values that backward rules log, which `with_logs` of a pullback returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, BadRule, NotApplicable

jax: Any = effax
XS = jnp.arange(1.0, 4.0)


def rule(name: str = "f") -> Any:
    """sin(x)·y, which logs the cotangent and y."""
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp_with_logs(
        lambda x, y: (f(x, y), (jnp.cos(x), jnp.sin(x), y)),
        lambda res, g: ((res[0] * g * res[2], res[1] * g), {name: {"ct": g, "y": (res[2], [g])}}),
    )
    return f


def test_a_pullback_returns_what_its_rules_log() -> None:
    f = rule()
    _, pullback = jax.vjp(f, 1.0, 2.0)
    (dx, dy), logs = pullback.with_logs(3.0)
    assert float(dx) == pytest.approx(6 * np.cos(1.0))
    assert logs == {"f": {"ct": 3.0, "y": (2.0, [3.0])}}
    assert pullback(3.0) == (dx, dy)
    assert float(jax.grad(f)(1.0, 2.0)) == pytest.approx(2 * np.cos(1.0))


def scanned(xs: Any) -> Any:
    f = rule()
    return lax.scan(lambda c, x: (c + jax.jit(f)(x, 2.0), None), 0.0, xs)[0]


@pytest.mark.slow
def test_logs_of_loops_and_batches_are_stacked() -> None:
    def logs_of(fun: Any, x: Any, ct: Any) -> Any:
        (dx,), logs = jax.vjp(fun, x)[1].with_logs(ct)
        return dx, logs["f"]["ct"], logs["f"]["y"][0]

    batched = jax.vmap(rule(), in_axes=(0, None))
    again = jax.checkpoint(lambda x: rule()(x, 2.0) * 3.0)
    for fun, x, ct, expected in (
        (scanned, XS, 1.0, np.ones(3)),
        (lambda x: batched(x, 2.0), XS, jnp.ones(3), np.ones(3)),
        (again, jnp.float32(1), 1.0, np.float32(3)),
    ):
        for run in (logs_of, jax.jit(logs_of, static_argnums=0)):
            dx, logged, y = run(fun, x, ct)
            np.testing.assert_array_equal(logged, expected)
            np.testing.assert_array_equal(y, 2 * np.ones_like(expected))
            np.testing.assert_allclose(dx, 2 * np.cos(x) * expected, rtol=1e-5)


def test_plain_calls_compute_no_logs() -> None:
    f = jax.custom_vjp(jnp.sin)
    f.defvjp_with_logs(lambda x: (f(x), x), lambda x, g: ((g * 2,), {"e": jnp.exp(x)}))
    made = jax.make_jaxpr(jax.grad(f))(1.0)
    assert "exp" not in str(made)


def test_a_gradient_beside_the_result_logs() -> None:
    def square(x: Any) -> Any:
        return x**2, lambda g: (2 * x * g, {"g": g})

    f = jax.custom_gradient(with_logs=True)(square)
    assert float(jax.grad(f)(3.0)) == 6.0
    (dx,), logs = jax.vjp(f, 3.0)[1].with_logs(1.0)
    assert (float(dx), float(logs["g"])) == (6.0, 1.0)


def bad(logged: Any) -> Any:
    f = jax.custom_vjp(lambda x: x * 1.0)
    f.defvjp_with_logs(lambda x: (f(x), None), lambda _, g: logged(g))
    return f


def test_what_is_refused() -> None:
    with pytest.raises(BadRule, match="must produce a pair"):
        jax.grad(bad(lambda g: (g,)))(1.0)
    with pytest.raises(BadRule, match="None or a dict"):
        jax.grad(bad(lambda g: ((g,), [1.0])))(1.0)
    with pytest.raises(BadArgument, match="keys of logs"):
        jax.vjp(bad(lambda g: ((g,), {1: g})), 1.0)[1].with_logs(1.0)
    assert jax.vjp(bad(lambda g: ((g,), None)), 1.0)[1].with_logs(1.0) == ((1.0,), {})
    f = rule()
    with pytest.raises(BadArgument, match="log a value named 'f"):
        jax.vjp(lambda x: f(x, 1.0) * f(x, 2.0), 1.0)[1].with_logs(1.0)


def test_a_rule_in_a_branch_does_not_log() -> None:
    f = rule()

    def branched(p: Any, x: Any) -> Any:
        return jax.vjp(lambda x: lax.cond(p, lambda: f(x, 2.0), lambda: x), x)[1].with_logs(1.0)

    with pytest.raises(NotApplicable, match="in cond logs"):
        jax.jit(branched)(True, 1.0)
