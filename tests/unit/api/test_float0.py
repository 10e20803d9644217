"""Integers and booleans among what is differentiated: float0, everywhere, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped

jax: Any = effax
F0 = effax.float0
N, X = jnp.int32(3), jnp.float32(2)
B = jnp.array([True, False])
NONE = np.zeros((), F0)
WRAPS = [lambda f: f, effax.jit]


def scaled(n: Any, x: Any) -> Any:
    return x * n


def kinds(tree: Any) -> Any:
    return jax.tree.map(lambda x: (str(x.dtype) if x.dtype != F0 else "float0", x.shape), tree)


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_gradients(wrap: Any) -> None:
    n, x = wrap(jax.grad(scaled, (0, 1), allow_int=True))(N, X)
    assert (kinds((n, x)), float(x)) == ((("float0", ()), ("float32", ())), 3.0)
    value, (b, x) = wrap(
        jax.value_and_grad(lambda b, x: jnp.where(b, x, 0.0).sum(), (0, 1), allow_int=True)
    )(B, X)
    assert (kinds(b), float(value), float(x)) == (("float0", (2,)), 2.0, 1.0)
    both = wrap(jax.grad(lambda d: d["x"] * d["n"], allow_int=True))({"x": X, "n": N})
    assert kinds(both) == {"n": ("float0", ()), "x": ("float32", ())}
    alone = wrap(jax.grad(lambda n: (n * 2.0).sum(), allow_int=True))(np.arange(3))
    assert kinds(alone) == ("float0", (3,))


MADE: dict[str, Any] = {
    "zeros": lambda g: jnp.zeros(3, F0),
    "ones": lambda g: jnp.ones(3, F0),
    "empty": lambda g: jnp.empty((3,), F0),
    "full": lambda g: jnp.full(3, False, F0),
    "zeros_like": jnp.zeros_like,
    "zeros_like dtype": lambda g: jnp.zeros_like(jnp.arange(3), dtype=F0),
    "full_like": lambda g: jnp.full_like(g, 0),
    "asarray": lambda g: jnp.asarray(np.zeros(3, F0)),
    "array of numbers": lambda g: jnp.array([0, 0, 0], F0),
    "astype": lambda g: jnp.arange(3).astype(F0),
    "pad": lambda g: jnp.pad(g[1:], (1, 0)),
    "reference": lambda g: jax.new_ref(g)[...],
    "where": lambda g: jnp.where(jnp.array([True, False, True]), g, g),
    "update": lambda g: g.at[0].set(g[1]),
    "tree": lambda g: jax.tree.map(jnp.zeros_like, {"g": g})["g"],
}


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
@pytest.mark.parametrize("name", MADE)
def test_arrays_are_made(name: str, wrap: Any) -> None:
    g = jax.grad(lambda n: 1.0, allow_int=True)(jnp.arange(3))
    made = wrap(MADE[name])(g)
    assert kinds(made) == ("float0", (3,))
    assert np.asarray(made).dtype == F0


COMPARED: dict[str, Any] = {
    "==": lambda g, z: g == z,
    "== broadcast": lambda g, z: g[:, None] == z,
    "equal": lambda g, z: jnp.equal(g, z[0]),
    "not !=": lambda g, z: ~(g != z),
    "array_equal": jnp.array_equal,
    "array_equiv": lambda g, z: jnp.array_equiv(g, z[1]),
    "not isnan": lambda g, z: ~jnp.isnan(g),
    "trees": lambda g, z: jax.tree.map(jnp.array_equal, [g, g], [z, g])[0],
}


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
@pytest.mark.parametrize("name", COMPARED)
def test_elements_are_equal(name: str, wrap: Any) -> None:
    g = jax.grad(lambda n: 1.0, allow_int=True)(jnp.arange(3))
    for z in (g, jnp.zeros(3, F0)):
        found = wrap(COMPARED[name])(g, z)
        assert found.dtype == bool
        assert bool(found.all())
    assert bool((np.zeros(3, F0) == g).all())
    assert np.array_equal(g, np.zeros(3, F0))


def test_gradients_that_are_not_asked_for_are_refused() -> None:
    for f in (jax.grad, jax.jacrev):
        with pytest.raises(IllTyped, match="with respect to n, which is not real") as caught:
            f(scaled)(N, X)
        assert "allow_int=True" in str(caught.value.remedy)
    with pytest.raises(IllTyped, match="with respect to n, which is not real") as caught:
        jax.jacfwd(scaled)(N, X)
    assert "allow_int" not in str(caught.value.remedy)
    with pytest.raises(IllTyped, match="returns a real number"):
        jax.grad(lambda x: N)(X)


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_pulling_back(wrap: Any) -> None:
    def pulled(n: Any, x: Any, ct: Any) -> Any:
        return jax.vjp(scaled, n, x)[1](ct)

    assert kinds(wrap(pulled)(N, X, X)) == (("float0", ()), ("float32", ()))

    def through(n: Any, x: Any, ct: Any) -> Any:
        return jax.vjp(lambda n, x: (n * 2, x), n, x)[1]((NONE, ct))

    assert float(wrap(through)(N, X, X)[1]) == 2.0
    with pytest.raises(IllTyped, match=r"the cotangent of the result\[0\] must be zero"):
        wrap(lambda n, x: jax.vjp(lambda n, x: (n * 2, x), n, x)[1]((n, x)))(N, X)


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_pushing_forward(wrap: Any) -> None:
    def pushed(n: Any, x: Any) -> Any:
        return jax.jvp(lambda n, x: (n, x > 0, n * x), (n, x), (NONE, x))

    outs, dots = wrap(pushed)(N, X)
    assert kinds(dots) == (("float0", ()), ("float0", ()), ("float32", ()))
    assert float(dots[2]) == 6.0
    assert outs[0] == 3
    assert float(jax.linearize(scaled, N, X)[1](NONE, X)) == 6.0
    for wrong in (N, X, np.zeros(2, F0)):
        with pytest.raises(IllTyped, match="the tangent of n must be zero"):
            wrap(lambda n, x: jax.jvp(scaled, (n, x), (wrong, x)))(N, X)  # noqa: B023
    with pytest.raises(IllTyped, match="the tangent of x has the wrong type"):
        wrap(lambda n, x: jax.jvp(scaled, (n, x), (NONE, NONE)))(N, X)


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_zeros_are_values_in_programs(wrap: Any) -> None:
    three = np.zeros(3, F0)
    assert kinds(wrap(lambda t: t)(three)) == ("float0", (3,))
    again = wrap(lambda t: (t, {"a": t}))
    assert kinds(again(three)) == kinds(again(again(three)[0]))
    _, ys = wrap(lambda t: lax.scan(lambda c, y: (c, y), t[0], t))(three)
    assert kinds(ys) == ("float0", (3,))
    assert kinds(wrap(lambda p, t: lax.cond(p, lambda: t, lambda: t))(True, three)) == (
        "float0",
        (3,),
    )
    batched = wrap(jax.vmap(lambda t, n: jax.jvp(scaled, (n, X), (t, X))))
    np.testing.assert_allclose(batched(three, jnp.arange(3))[1], [0, 2, 4])


def test_jacobians() -> None:
    n, x = jax.jacrev(lambda n, x: x * n, (0, 1), allow_int=True)(jnp.arange(3), X)
    assert kinds(n) == ("float0", (3, 3))
    np.testing.assert_allclose(x, [0, 1, 2])
    assert float(jax.hessian(lambda n, x: n * x * x, 1)(N, X)) == 6.0
    mapped = jax.vmap(jax.grad(scaled, (0, 1), allow_int=True))(jnp.arange(2), jnp.ones(2))
    assert kinds(mapped) == (("float0", (2,)), ("float32", (2,)))


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_custom_rules(wrap: Any) -> None:
    seen: list[Any] = []

    @effax.custom_jvp
    def f(n: Any, x: Any) -> Any:
        return n, x * n

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        seen.append(t[0].dtype)
        return f(*p), (t[0], t[1] * p[0] * 5)

    dots = wrap(lambda n, x: jax.jvp(f, (n, x), (NONE, x))[1])(N, X)
    assert (kinds(dots[0]), float(dots[1])) == (("float0", ()), 30.0)
    assert float(wrap(jax.grad(lambda x: f(3, x)[1]))(X)) == 15.0
    assert set(seen) == {F0}

    for given in (None, NONE, N):
        g = jax.custom_vjp(lambda n, x: (n, x * n))
        g.defvjp(lambda n, x: ((n, x * n), n), lambda n, ct, zero=given: (zero, ct[1] * n * 3))
        n, x = wrap(jax.grad(lambda n, x: g(n, x)[1], (0, 1), allow_int=True))(N, X)  # noqa: B023
        assert (kinds(n), float(x)) == (("float0", ()), 9.0)
    h = jax.custom_rules(lambda n, x: x * n)
    h.defjvp(lambda p, t: (h(*p), t[1] * p[0] * 5))
    h.defvjp(lambda n, x: (h(n, x), n), lambda n, ct: (None, ct * n * 7))
    assert float(wrap(lambda n, x: jax.jvp(h, (n, x), (NONE, x))[1])(N, X)) == 30.0
    assert float(wrap(jax.grad(h, 1))(N, X)) == 21.0


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
def test_integers_in_loops_and_choices(wrap: Any) -> None:
    def looped(n: Any, x: Any) -> Any:

        def step(c: Any, i: Any) -> Any:
            return ((c[0] + 1, c[1] * x), i)

        return lax.scan(step, (n, x), jnp.arange(2))[0][1]

    n, x = wrap(jax.grad(looped, (0, 1), allow_int=True))(N, X)
    assert (kinds(n), float(x)) == (("float0", ()), 12.0)

    def chosen(n: Any, x: Any) -> Any:
        return lax.switch(n, [lambda x: x, lambda x: x * x, lambda x: x**3], x)

    assert float(wrap(jax.grad(jax.checkpoint(chosen), (0, 1), allow_int=True))(N, X)[1]) == 12.0
    assert float(wrap(jax.grad(jax.grad(looped, 1), 1))(N, X)) == 12.0
