"""custom_jvp and custom_vjp: rules that call their own function, at every order and place."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.prims import CustomJvp
from effax.ir.text.parser import parse
from effax.ir.text.printer import references

jax: Any = effax


def recursive_sine() -> Any:
    """sin, whose rule is twice the derivative, by a rule that calls the function."""

    @effax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), 2.0 * f(x + np.pi / 2) * t

    return f


# d f(x) = 2 f(x + π/2), so the k-th derivative is 2^k sin(x + kπ/2).
def derivative(k: int, x: Any) -> Any:
    return 2.0**k * np.sin(x + k * np.pi / 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_rule_may_call_its_function(order: int, wrap: Any) -> None:
    f = recursive_sine()
    for _ in range(order):
        f = jax.grad(f)
    assert float(wrap(f)(0.3)) == pytest.approx(derivative(order, 0.3), rel=1e-5)
    xs = jnp.linspace(0, 1, 4)
    np.testing.assert_allclose(
        wrap(jax.vmap(f))(xs), derivative(order, np.asarray(xs)), rtol=1e-5, atol=1e-5
    )


def test_forward_over_reverse_and_jit_between() -> None:
    f = recursive_sine()
    g = jax.jit(jax.grad(jax.jit(f)))
    assert float(jax.jvp(g, (0.3,), (1.0,))[1]) == pytest.approx(derivative(2, 0.3), rel=1e-5)
    assert float(jax.grad(g)(0.3)) == pytest.approx(derivative(2, 0.3), rel=1e-5)
    batched = jax.vmap(jax.grad(jax.vmap(jax.grad(f))), in_axes=None, axis_size=1)
    with pytest.raises(TypeError, match="scalar"):
        batched(jnp.ones(2))


def test_a_rule_may_loop_over_its_function() -> None:
    weights = jnp.array([0.5, 0.25])

    @effax.custom_jvp
    def f(x: Any, scale: Any) -> Any:
        return jnp.exp(x) * scale + weights[0] * 0

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, scale), (t, _) = primals, tangents
        slope, _ = lax.scan(lambda c, w: (c + w * f(x, scale), None), x * 0, weights)
        return f(x, scale), lax.cond(x > 0, lambda: slope, lambda: slope * 2) * t

    # The slope is 3/4 of the function.
    assert float(jax.grad(f)(1.0, 2.0)) == pytest.approx(0.75 * np.e * 2, rel=1e-5)
    assert float(jax.grad(jax.grad(f))(1.0, 2.0)) == pytest.approx(0.5625 * np.e * 2, rel=1e-5)
    second = jax.vmap(jax.grad(jax.grad(f)), (0, None))(jnp.array([1.0, 2.0]), 2.0)
    np.testing.assert_allclose(second, 0.5625 * 2 * np.exp([1.0, 2.0]), rtol=1e-5)
    under = jax.vmap(lambda p, x: lax.cond(p, lambda x: jax.grad(f)(x, 1.0), lambda x: x, x))
    got = under(jnp.array([True, False]), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(got, [0.75 * np.e, 2.0], rtol=1e-5)


def test_rules_of_each_other() -> None:
    sine, cosine = jax.custom_jvp(jnp.sin), jax.custom_jvp(jnp.cos)
    sine.defjvp(lambda p, t: (sine(*p), cosine(*p) * t[0]))
    cosine.defjvp(lambda p, t: (cosine(*p), -sine(*p) * t[0]))
    f = sine
    for k in range(1, 6):
        f = jax.grad(f)
        assert float(f(0.3)) == pytest.approx(np.sin(0.3 + k * np.pi / 2), rel=1e-5)


def test_what_is_compiled_inside_of_a_rule_means_the_same_outside() -> None:
    f = recursive_sine()
    twice = effax.jit(lambda x: 2.0 * f(x))

    @effax.custom_jvp
    def g(x: Any) -> Any:
        return f(x)

    g.defjvp(lambda p, t: (g(*p), twice(*p) * t[0]))
    h = effax.jit(lambda x: g(x) + 0.0)
    # Traced first inside of the rule of g, then by itself, then differentiated.
    g.defjvp(lambda p, t: (h(*p), twice(*p) * t[0]))
    assert float(jax.grad(g)(0.3)) == pytest.approx(2 * np.sin(0.3), rel=1e-5)
    assert float(h(0.3)) == pytest.approx(np.sin(0.3), rel=1e-5)
    assert float(jax.grad(h)(0.3)) == pytest.approx(2 * np.sin(0.3), rel=1e-5)
    assert float(jax.grad(jax.grad(h))(0.3)) == pytest.approx(4 * np.cos(0.3) * 1.0, rel=1e-5)


def test_backward_rules_call_their_function() -> None:
    @effax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def backward(res: Any, g: Any) -> Any:
        x, y = res
        return 3.0 * f(x + np.pi / 2, y) * g, f(x, 1.0) * g

    f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)
    assert float(jax.grad(f)(0.3, 2.0)) == pytest.approx(6 * np.cos(0.3), rel=1e-5)
    second = jax.grad(jax.grad(f))
    assert float(second(0.3, 2.0)) == pytest.approx(-18 * np.sin(0.3), rel=1e-5)
    np.testing.assert_allclose(
        effax.jit(jax.vmap(second, (0, None)))(jnp.array([0.3, 0.4]), 2.0),
        -18 * np.sin([0.3, 0.4]),
        rtol=1e-5,
    )


def test_programs_with_recursive_rules_are_finite_and_parse_back() -> None:
    f = recursive_sine()
    jaxpr = effax.make_jaxpr(f)(1.0).jaxpr
    prim = jaxpr.eqns[0].prim
    assert isinstance(prim, CustomJvp)
    assert parse(str(jaxpr), references=references(jaxpr)) == jaxpr
    assert effax.make_jaxpr(f)(1.0).jaxpr == jaxpr
    # The rule has calls of the function with the same rule.
    pushed = prim.rule((True,)).jaxpr
    inside = [eqn.prim for eqn in pushed.eqns if isinstance(eqn.prim, CustomJvp)]
    assert [p.rule is prim.rule for p in inside] == [True, True]


def test_a_rule_may_call_its_function_on_other_types() -> None:
    @effax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), jax.vmap(f)(jnp.stack([x, x])).sum() * t

    assert float(jax.grad(f)(0.3)) == pytest.approx(2 * np.sin(0.3), rel=1e-5)
    # d f(x) = 2 f(x), and f(x) of one element of a batch too.
    assert float(jax.grad(jax.grad(f))(0.3)) == pytest.approx(4 * np.sin(0.3), rel=1e-5)


def test_defaults_reach_the_rule() -> None:
    @effax.custom_jvp
    def f(x: Any, scale: float = 2.0) -> Any:
        return x * scale

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, scale), (t, _) = primals, tangents
        return f(x, scale), 10.0 * scale * t

    assert float(jax.grad(f)(1.0)) == 20.0
    assert float(jax.grad(lambda x: f(x, scale=3.0))(1.0)) == 30.0
    assert float(jax.grad(lambda x: f(scale=4.0, x=x))(1.0)) == 40.0


def test_a_rule_without_cotangents_still_runs() -> None:
    @effax.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def backward(ref: Any, g: Any) -> Any:
        ref[...] += g
        return None, None

    stash.defvjp(lambda ref, x: (x, ref), backward)
    ref = effax.new_ref(0.0)
    assert float(jax.grad(lambda x, r: stash(r, x) * 3.0)(1.0, ref)) == 0.0
    assert float(ref[...]) == 3.0


def test_weak_tangents_in_rules() -> None:
    @effax.custom_jvp
    def f(x: Any, h: Any) -> Any:
        return x * h

    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] + p[0] * t[1]))
    h = jnp.array([1.0, 2.0], "float16")
    out, dot = jax.jvp(lambda x: f(x, h), (2.0,), (1.0,))
    assert (str(out.dtype), str(dot.dtype)) == ("float16", "float16")


def test_compiled_and_custom_functions_keep_their_own_state() -> None:
    """Wrapping one in another copies no attribute of it."""
    f = recursive_sine()
    jitted = effax.jit(f)
    assert float(jax.grad(jitted)(0.3)) == pytest.approx(derivative(1, 0.3), rel=1e-5)
    again = jax.custom_jvp(jitted)
    again.defjvp(lambda p, t: (again(*p), 7.0 * t[0]))
    assert float(jax.grad(again)(0.3)) == 7.0
    inner = effax.jit(lambda x: x.sum())
    assert effax.jit(jax.vmap(inner))(jnp.ones((2, 3))).shape == (2,)
    assert effax.jit(jax.grad(effax.jit(lambda x: x * x)))(3.0) == 6.0
    partial_f = partial(effax.jit(lambda x, n: x * n, static_argnames="n"), n=2)
    assert float(effax.jit(partial_f)(3.0)) == 6.0


def test_a_partial_function_with_a_rule() -> None:
    g = effax.custom_jvp(partial(lambda x, a: x * a, a=0.5))
    g.defjvp(lambda primals, tangents: (g(*primals), 7 * tangents[0]))
    for run in (g, effax.jit(g)):
        assert run(2.0) == 1.0
        assert effax.grad(run)(2.0) == 7.0


def test_keyword_only_arguments_are_refused_everywhere() -> None:
    @effax.custom_jvp
    def g(x: Any, *, scale: float = 1.0) -> Any:
        return x * scale

    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0]))
    for run in (g, effax.jit(g)):
        with pytest.raises(TypeError, match="not positional"):
            run(1.0, scale=2.0)


def test_a_function_without_results_has_no_cotangents() -> None:
    @effax.custom_vjp
    def nothing(x: Any) -> None:
        return None

    nothing.defvjp(lambda x: (None, x), lambda x, ct: 1 / 0)
    assert effax.grad(lambda x: (nothing(x), x * x)[1])(3.0) == 6.0


def test_equal_results_of_a_batched_call_are_unbatched() -> None:
    @effax.custom_jvp
    def total(x: Any) -> Any:
        return lax.psum(x, "i")

    total.defjvp(lambda primals, tangents: (total(*primals), lax.psum(tangents[0], "i")))
    summed = effax.vmap(total, axis_name="i", out_axes=None)
    for run in (summed, effax.jit(summed)):
        assert run(jnp.arange(4.0)) == 6.0
        assert effax.grad(run)(jnp.arange(4.0)).tolist() == [1.0] * 4


def test_a_rule_of_a_converted_closure_closes_over_nothing() -> None:
    @partial(effax.custom_vjp, nondiff_argnums=(0,))
    def apply(f: Any, x: Any, *values: Any) -> Any:
        return f(x, *values)

    def fwd(f: Any, x: Any, *values: Any) -> Any:
        return apply(f, x, *values), (x, values)

    def bwd(f: Any, kept: Any, ct: Any) -> Any:
        return (10 * kept[0], *[100 * v for v in kept[1]])

    apply.defvjp(fwd, bwd)

    def solve(c: Any, x: Any) -> Any:
        converted, values = effax.closure_convert(lambda y: jnp.sum((y - c) ** 2), x)
        return apply(converted, x, *values)

    dc, dx = effax.grad(solve, (0, 1))(jnp.ones(2), 2 * jnp.ones(2))
    np.testing.assert_allclose(dc, 100 * np.ones(2))
    np.testing.assert_allclose(dx, 20 * np.ones(2))


def test_results_of_rules_are_as_weak_as_those_of_the_function() -> None:
    @effax.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2.0

    doubled.defvjp(lambda x: (jnp.asarray(x * 2.0, float), ()), lambda _, ct: (ct * 2,))
    value, pullback = jax.vjp(doubled, 1.0)
    assert value.weak_type
    assert pullback(1.0)[0].weak_type
    assert not jax.vjp(doubled, jnp.ones(()))[0].weak_type
