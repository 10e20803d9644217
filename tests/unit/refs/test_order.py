"""Effects happen in the order of the program, once each time that it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

jax: Any = effax
F = Callable[[Any], Any]

EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])


def while3(f: F) -> F:
    return lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]


def scan3(f: F) -> F:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 3)[0]


def of_constant(f: F) -> F:
    """A loop in which ``f`` works on what does not change: a pass may want to hoist it."""
    return lambda x: lax.scan(lambda c, _: (c * f(1.0), None), x, None, 3)[0]


ONCE: dict[str, tuple[int, Callable[[F], F]]] = {
    "a call": (1, lambda f: f),
    "jit": (1, jax.jit),
    "grad": (1, jax.grad),
    "value_and_grad": (1, jax.value_and_grad),
    "jvp": (1, lambda f: lambda x: jax.jvp(f, (x,), (1.0,))),
    "vjp, pulled back twice": (1, lambda f: lambda x: [jax.vjp(f, x)[1](ct) for ct in (1.0,)] * 2),
    "linearize": (1, lambda f: lambda x: jax.linearize(f, x)[1](1.0)),
    "grad of grad": (1, lambda f: jax.grad(jax.grad(f))),
    "hessian": (1, jax.hessian),
    "jacfwd": (1, jax.jacfwd),
    "jacrev": (1, jax.jacrev),
    "grad of jit": (1, lambda f: jax.grad(jax.jit(f))),
    "grad of cond": (1, lambda f: jax.grad(lambda x: lax.cond(x > 1, f, lambda x: x, x))),
    "the other branch": (0, lambda f: lambda x: lax.cond(x < 1, f, lambda x: x, x)),
    "scan": (3, scan3),
    "grad of scan": (3, lambda f: jax.grad(scan3(f))),
    "linearize of scan": (3, lambda f: lambda x: jax.linearize(scan3(f), x)[1](1.0)),
    "scan of what does not change": (3, of_constant),
    "grad of that": (3, lambda f: jax.grad(of_constant(f))),
    "linearize of that": (3, lambda f: lambda x: jax.linearize(of_constant(f), x)[1](1.0)),
    "while": (3, while3),
    "jvp of while": (3, lambda f: lambda x: jax.jvp(while3(f), (x,), (1.0,))),
    "linearize of while": (3, lambda f: lambda x: jax.linearize(while3(f), x)[1](1.0)),
    "fori_loop": (4, lambda f: lambda x: lax.fori_loop(0, 4, lambda _, c: f(c), x)),
    "grad of fori_loop": (
        4,
        lambda f: jax.grad(lambda x: lax.fori_loop(0, 4, lambda _, c: f(c), x)),
    ),
    "a dead result": (1, lambda f: lambda x: (f(x), x)[1]),
    "a dead result of jit": (1, lambda f: lambda x: (jax.jit(f)(x), x)[1]),
    "jvp of a dead result": (1, lambda f: lambda x: jax.jvp(lambda x: (f(x), x)[1], (x,), (1.0,))),
    "grad of a dead result": (1, lambda f: jax.grad(lambda x: (f(x), x)[1])),
    "beside checkpoint": (1, lambda f: jax.grad(lambda x: jax.checkpoint(jnp.sin)(f(x)))),
    "make_jaxpr": (0, lambda f: lambda x: (jax.make_jaxpr(f)(x), x)[1]),
    "eval_shape": (0, lambda f: lambda x: (jax.eval_shape(f, x), x)[1]),
    "vmap, unbatched": (2, lambda f: lambda x: jax.vmap(lambda y: y * f(2.0))(jnp.stack([x, x]))),
}


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("name", ONCE)
def test_effects_happen_once(name: str, wrap: Any) -> None:
    times, transform = ONCE[name]
    count = jax.new_ref(0)

    def f(x: Any) -> Any:
        count[...] += 1
        return jnp.sin(x) * x

    run = wrap(transform(f))
    run(2.0)
    assert int(count[...]) == times
    run(3.0)
    assert int(count[...]) == 2 * times


@EAGER_AND_JITTED
def test_a_pullback_runs_nothing_again(wrap: Any) -> None:
    count = jax.new_ref(0)

    def f(x: Any) -> Any:
        count[...] += 1
        return jnp.sin(x)

    def both(x: Any) -> Any:
        _, pull = jax.vjp(f, x)
        _, push = jax.linearize(f, x)
        return pull(1.0), pull(2.0), push(1.0), push(2.0)

    wrap(both)(1.0)
    assert int(count[...]) == 2


@EAGER_AND_JITTED
def test_batch_elements_of_a_loop_count_their_iterations(wrap: Any) -> None:
    total = jax.new_ref(0)

    def element(n: Any) -> Any:
        def body(i: Any) -> Any:
            jax.ref.addupdate(total, ..., 1)
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0)

    np.testing.assert_array_equal(wrap(jax.vmap(element))(jnp.asarray([1, 0, 5])), [1, 0, 5])
    assert int(total[...]) == 6


TRANSFORMED: dict[str, Callable[[F], F]] = {
    "call": lambda f: f,
    "grad": jax.grad,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (1.0,)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](1.0),
    "hessian": jax.hessian,
    "checkpoint of what follows": lambda f: jax.grad(lambda x: jax.checkpoint(jnp.cos)(f(x))),
}


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("how", TRANSFORMED)
def test_effects_keep_the_order_of_the_program(how: str, wrap: Any) -> None:
    entries, end = jax.new_ref(jnp.zeros(8, int)), jax.new_ref(0)

    def log(value: int) -> Any:
        entries[end[...]] = value
        end[...] += 1

    def f(x: Any) -> Any:
        log(1)
        y = jax.jit(lambda x: (log(2), jnp.sin(x))[1])(x)
        lax.cond(x > 0, lambda: log(3), lambda: log(-3))
        lax.foreach(length=2)(lambda: log(4))
        log(5)
        z = lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, (log(6), s[1])[1]), (0, y))[1]
        return (y if how == "grad" or "checkpoint" in how or how == "hessian" else z) * x

    wrap(TRANSFORMED[how](f))(2.0)
    np.testing.assert_array_equal(entries[...], [1, 2, 3, 4, 4, 5, 6, 0])


@EAGER_AND_JITTED
@pytest.mark.parametrize("how", TRANSFORMED)
def test_reads_see_the_writes_before_them(how: str, wrap: Any) -> None:
    """x · r with r = 3 then 5, while r changes on the way: effects stay where they are."""
    r = jax.new_ref(3.0)

    def f(x: Any) -> Any:
        first = x * r[...]
        r[...] = 5.0
        second = jnp.sin(x) * r[...]
        r[...] = 3.0
        return first + second

    out = np.asarray(jax.tree.leaves(wrap(TRANSFORMED[how](f))(2.0))[-1])
    slope, value = 3 + 5 * np.cos(2.0), 6 + 5 * np.sin(2.0)
    wanted = {"call": value, "hessian": -5 * np.sin(2.0)}.get(how, slope)
    if "checkpoint" in how:
        wanted = -np.sin(value) * slope
    np.testing.assert_allclose(out, wanted, rtol=1e-5)
    assert float(r[...]) == 3.0


def pure(x: Any) -> Any:
    """x ↦ sin(2x), with references that are local."""
    ref, other = jax.new_ref(x), jax.empty_ref(jnp.shape(x), jnp.float32)
    ref[...] = ref[...] + ref[...]
    other[...] = jnp.sin(ref[...])
    jax.free_ref(ref)
    return jax.freeze(other)


@pytest.mark.slow
@EAGER_AND_JITTED
def test_functions_with_internal_references_are_pure(wrap: Any) -> None:
    program = jax.make_jaxpr(pure)(1.0).jaxpr
    assert not program.effects
    x = jnp.asarray([0.5, 1.5])
    np.testing.assert_allclose(wrap(pure)(x), np.sin(2 * np.asarray(x)), rtol=1e-6)
    slope = 2 * np.cos(2 * np.asarray(x))
    results = {
        "vmap": (jax.vmap(pure), np.sin(2 * np.asarray(x))),
        "vmap of grad": (jax.vmap(jax.grad(pure)), slope),
        "vmap of jit": (jax.vmap(jax.jit(pure)), np.sin(2 * np.asarray(x))),
        "jacfwd": (jax.jacfwd(pure), np.diag(slope)),
        "jacrev": (jax.jacrev(pure), np.diag(slope)),
        "checkpoint": (jax.jacrev(jax.checkpoint(pure)), np.diag(slope)),
        "scan": (lambda x: lax.scan(lambda c, y: (c, pure(y)), 0, x)[1], np.sin(2 * np.asarray(x))),
        "grad of scan": (
            jax.grad(lambda x: jnp.sum(lax.scan(lambda c, y: (c, pure(y)), 0, x)[1])),
            slope,
        ),
        "cond": (lambda x: lax.cond(True, pure, lambda x: x, x), np.sin(2 * np.asarray(x))),
        "linearize": (lambda x: jax.linearize(pure, x)[1](jnp.ones(2)), slope),
    }
    for name, (f, wanted) in results.items():
        np.testing.assert_allclose(wrap(f)(x), wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def test_dead_internal_references_go() -> None:
    def f(x: Any) -> Any:
        unused = jax.new_ref(x)
        unused[...] = jnp.sin(x)
        return x * 2

    from effax.transforms.optimize.dce import dce

    program = dce(jax.make_jaxpr(f)(1.0).jaxpr).unwrap().jaxpr
    assert "ref" not in str(program).lower()
    assert "sin" not in str(program)
