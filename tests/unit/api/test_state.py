"""State after errors, leaks, recursion and concurrency: no trace, no changed reference."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError, IllTyped, LeakedTracer, LoweringError, RefError
from effax.ir.trace import current_trace

jax: Any = effax


class Boom(Exception):
    """An exception of a user's function."""


TRANSFORMED: dict[str, Callable[[Any], object]] = {
    "jit": lambda f: jax.jit(f)(1.0),
    "grad": lambda f: jax.grad(f)(1.0),
    "value_and_grad": lambda f: jax.value_and_grad(f)(1.0),
    "vjp": lambda f: jax.vjp(f, 1.0),
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 1.0),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(2)),
    "jacfwd": lambda f: jax.jacfwd(f)(1.0),
    "jacrev": lambda f: jax.jacrev(f)(1.0),
    "hessian": lambda f: jax.hessian(f)(1.0),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(1.0),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0),
    "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "lower": lambda f: jax.jit(f).lower(1.0),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(2)),
    "map": lambda f: lax.map(f, jnp.ones(2)),
    "cond": lambda f: lax.cond(True, f, lambda x: x, 1.0),
    "switch": lambda f: lax.switch(0, [f, f], 1.0),
    "while_loop": lambda f: lax.while_loop(lambda c: c < 3, lambda c: f(c) + 1, 0.0),
    "the condition": lambda f: lax.while_loop(f, lambda c: c, 0.0),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), 0.0),
    "custom_jvp": lambda f: jax.jit(_with_rule(f, lambda p, t: (p[0], t[0])))(1.0),
    "the jvp rule": lambda f: jax.grad(_with_rule(lambda x: x, lambda p, t: (f(p[0]), t[0])))(1.0),
    "the fwd rule": lambda f: jax.grad(_with_rules(f, lambda r, g: (g,)))(1.0),
    "the bwd rule": lambda f: jax.grad(_with_rules(lambda x: (x, None), lambda r, g: (f(g),)))(1.0),
    "jit of grad of vmap": lambda f: jax.jit(jax.grad(lambda x: jax.vmap(f)(x[None]).sum()))(1.0),
    "scan in grad in jit": lambda f: jax.jit(
        jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])
    )(1.0),
}


def _with_rule(fun: Any, rule: Any) -> Any:
    f = jax.custom_jvp(fun)
    f.defjvp(rule)
    return f


def _with_rules(forward: Any, backward: Any) -> Any:
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(forward, backward)
    return f


@pytest.mark.parametrize("name", TRANSFORMED)
def test_an_exception_inside_leaves_nothing(name: str) -> None:
    ref = effax.new_ref(jnp.zeros(2))
    raising = True

    def f(x: Any) -> Any:
        nonlocal raising
        if raising:
            ref[0] += 1.0
            with effax.named_scope("scope of f"):
                raise Boom
        return x * 1.0

    with pytest.raises(Boom):
        TRANSFORMED[name](f)
    assert current_trace() is None
    np.testing.assert_array_equal(ref[...], [0, 0])
    raising = False
    try:
        TRANSFORMED[name](f)
    except EffaxError:
        # Some of these functions are no conditions or rules; they are refused, not confused.
        assert name in {"the condition", "the fwd rule"}
    assert current_trace() is None
    assert "scope of f" not in str(effax.jit(jnp.sin).trace(1.0).jaxpr.eqns[0].source)


def test_the_function_itself_is_called_again() -> None:
    calls = []

    @effax.jit
    def f(x: effax.Array) -> effax.Array:
        calls.append(1)
        if len(calls) == 1:
            raise Boom
        return x + 1

    with pytest.raises(Boom):
        f(jnp.float32(1))
    assert float(f(jnp.float32(1))) == 2.0


REF: effax.Ref = effax.new_ref(jnp.zeros(3))
LATE: dict[str, tuple[type[Exception], Callable[[Any], object]]] = {
    "no scalar": (IllTyped, lambda f: jax.grad(lambda x, r: f(r) * x)(1.0, REF)),
    "a returned reference": (RefError, lambda f: jax.jit(lambda r: (f(r), r))(REF)),
    "an alias": (RefError, lambda f: jax.jit(lambda a, b: (f(a), f(b)))(REF, REF)),
    "a result axis": (
        ValueError,
        lambda f: jax.vmap(lambda x: f(REF), out_axes=7)(jnp.ones(2)),
    ),
    "a differentiated value": (
        EffaxError,
        lambda f: jax.grad(lambda x, r: f(r)[0] + r.__setitem__(0, x))(1.0, REF),
    ),
    "a wrong carry": (IllTyped, lambda f: lax.scan(lambda c, _: (f(REF), None), 0.0, None, 2)),
    "a cotangent": (
        IllTyped,
        lambda f: jax.vjp(lambda x: x, 1.0)[1].with_refs(REF)(jnp.ones(3)),
    ),
    "tangents": (IllTyped, lambda f: jax.jvp(lambda x: f(REF), (1.0,), (jnp.ones(3),))),
    "no boolean": (IllTyped, lambda f: lax.while_loop(lambda c: f(REF), lambda c: c, 0.0)),
    "different branches": (IllTyped, lambda f: lax.cond(True, lambda: f(REF), lambda: 1.0)),
}


@pytest.mark.parametrize("name", LATE)
def test_a_call_that_is_refused_after_writes_has_written_nothing(name: str) -> None:
    error, call = LATE[name]

    def f(ref: effax.Ref) -> effax.Array:
        ref[0] = 7.0
        return jnp.ones(2)

    with pytest.raises(error):
        call(f)
    np.testing.assert_array_equal(REF[...], [0, 0, 0])


def test_a_call_that_cannot_be_compiled_has_written_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ref = effax.new_ref(jnp.zeros(3))

    @effax.jit
    def f(r: effax.Ref) -> effax.Array:
        r[0] = 7.25
        return r[0] * 1.2345

    def refuse(*args: object, **kwargs: object) -> object:
        raise LoweringError("not today")

    with monkeypatch.context() as patched:
        patched.setattr("effax.lowering.program.xla.compile_module", refuse)
        with pytest.raises(LoweringError, match="not today"):
            f(ref)
    np.testing.assert_array_equal(ref[...], [0, 0, 0])
    f(ref)
    np.testing.assert_array_equal(ref[...], [7.25, 0, 0])


def leaked(wrap: Callable[[Any], Any] = effax.jit) -> Any:
    """A tracer whose trace has ended."""
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2.0)
        return x * 1.0

    wrap(f)(jnp.float32(1.0))
    return kept[0]


USES: dict[str, Callable[[Any], object]] = {
    "arithmetic": lambda x: x + 1,
    "a function": jnp.sin,
    "a float": float,
    "a branch": bool,
    "NumPy": np.asarray,
    "a NumPy function": lambda x: np.add(x, 1),
    "an element": lambda x: x[None],
    "another jit": lambda x: effax.jit(lambda y: y + x)(1.0),
    "another jit, as argument": effax.jit(lambda y: y),
    "another jit, returned": lambda x: effax.jit(lambda y: x)(1.0),
    "grad": lambda x: jax.grad(lambda y: y * x)(1.0),
    "grad, as argument": jax.grad(lambda y: y),
    "vmap": lambda x: jax.vmap(lambda y: y * x)(jnp.ones(2)),
    "scan": lambda x: lax.scan(lambda c, y: (c + x, y), 0.0, jnp.ones(2)),
    "scan, as carry": lambda x: lax.scan(lambda c, y: (c, y), x, jnp.ones(2)),
    "cond, as predicate": lambda x: lax.cond(x, lambda: 1.0, lambda: 2.0),
    "a new reference": effax.new_ref,
    "a write": lambda x: REF.__setitem__(0, x),
    "an index": lambda x: REF[x.astype("int32")],
    "a cotangent": lambda x: jax.vjp(jnp.sin, 1.0)[1](x * 1),
    "a tangent": lambda x: jax.jvp(lambda y: y, (1.0,), (x,)),
}


@pytest.mark.parametrize("name", USES)
def test_a_leaked_tracer_is_reported(name: str) -> None:
    with pytest.raises(LeakedTracer, match=r"escaped from jit\(f\), which has ended"):
        USES[name](leaked())
    assert current_trace() is None
    np.testing.assert_array_equal(REF[...], [0, 0, 0])


@pytest.mark.parametrize("wrap", [jax.grad, jax.make_jaxpr, lambda f: lambda x: jax.vjp(f, x)])
def test_it_is_one_whatever_it_leaked_from(wrap: Any) -> None:
    with pytest.raises(LeakedTracer, match=r"test_state\.py"):
        leaked(wrap) + 1


def test_leaks_through_attributes_exceptions_and_generators() -> None:
    class Holder(Exception):
        x: Any

    def raises(x: Any) -> Any:
        error = Holder()
        error.x = x
        raise error

    with pytest.raises(Holder) as caught:
        effax.jit(raises)(1.0)
    with pytest.raises(LeakedTracer):
        caught.value.x + 1

    kept: list[Iterator[Any]] = []

    def generates(x: Any) -> Any:
        def values() -> Iterator[Any]:
            y = x * 2
            yield y
            yield y * 3

        kept.append(values())
        return next(kept[0])

    effax.jit(generates)(1.0)
    with pytest.raises(LeakedTracer):
        next(kept[0])


def test_an_outer_tracer_is_no_leak_but_an_inner_one_is() -> None:
    def outer(x: Any) -> Any:
        inner: list[Any] = []

        def keeps(z: Any) -> Any:
            inner.append(z)
            return z * x

        y = effax.jit(keeps)(x)
        with pytest.raises(LeakedTracer):
            y + inner[0]
        return y

    assert float(effax.jit(outer)(3.0)) == 9.0


def test_a_tracer_of_another_thread() -> None:
    seen: list[object] = []

    def f(x: Any) -> Any:
        def use() -> None:
            try:
                seen.append(x + 1)
            except EffaxError as error:
                seen.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    effax.jit(f)(1.0)
    assert isinstance(seen[0], LeakedTracer)


@pytest.mark.slow
def test_threads_trace_at_once() -> None:
    shared = effax.jit(lambda x, k: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) * k, x))
    results: dict[int, object] = {}
    start = threading.Barrier(4)

    def work(k: int) -> None:
        start.wait()
        try:
            for n in range(3):
                x = jnp.full((n + 1,), 0.5)
                jitted = effax.jit(jax.grad(lambda x: shared(x, k).sum()))(x)
                eager = jax.grad(lambda x: shared(x, k).sum())(x)
                np.testing.assert_allclose(jitted, eager, rtol=1e-5)
            results[k] = current_trace()
        except BaseException as error:  # noqa: BLE001  the main thread looks at it
            results[k] = error

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4))


ENDLESS: dict[str, Callable[[], object]] = {
    "jit": lambda: ENDLESS_JIT(1.0),
    "grad": lambda: _endless_grad(1.0),
    "cond": lambda: _endless_cond(1.0),
    "a rule": lambda: jax.grad(_with_rule(lambda x: x, _endless_rule))(1.0),
}
ENDLESS_JIT: Any = effax.jit(lambda x: ENDLESS_JIT(x) + 1)


def _endless_grad(x: Any) -> Any:
    return jax.grad(_endless_grad)(x)


def _endless_cond(x: Any) -> Any:
    return lax.cond(x > 0, _endless_cond, lambda x: x, x)


def _endless_rule(primals: Any, tangents: Any) -> Any:
    return jax.jvp(_with_rule(lambda x: x, _endless_rule), primals, tangents)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_endless_recursion_ends_cleanly(name: str) -> None:
    with pytest.raises(RecursionError):
        ENDLESS[name]()
    assert current_trace() is None
    assert float(effax.jit(lambda x: x + 1)(1.0)) == 2.0


def nested(depth: int) -> Any:
    def f(x: Any) -> Any:
        return jnp.sin(x)

    for _ in range(depth):
        f = effax.jit(lambda x, inner=f: inner(x) * 1.0)
    return f


@pytest.mark.slow
def test_deep_nesting() -> None:
    f = nested(60)
    assert float(f(1.0)) == pytest.approx(np.sin(1.0))
    assert float(jax.grad(f)(1.0)) == pytest.approx(np.cos(1.0))
    assert float(jax.vmap(jax.grad(f))(jnp.ones(1))[0]) == pytest.approx(np.cos(1.0))
    fifth = jnp.sin
    for _ in range(5):
        fifth = jax.grad(fifth)
    assert float(fifth(1.0)) == pytest.approx(np.cos(1.0))
