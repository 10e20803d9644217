"""Reverse mode through ``while``: correctness in any context, work and memory."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, NotApplicable, RefError
from effax.ir.prims import Sin
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.testing import check_grads

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"max_steps": 12, "checkpoint": "all"},
    {"max_steps": 12, "checkpoint": "sqrt"},
    {"max_steps": 12, "checkpoint": "log"},
)

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.get("checkpoint", "unbounded"))


def powers(x: Any, n: Any, **kind: Any) -> Any:
    """Return sin(·)·x applied n times to x."""
    return lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x), **kind
    )[1]


def unrolled(x: Any, n: int) -> Any:
    y = x
    for _ in range(n):
        y = jnp.sin(y) * x
    return y


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.slow
@each_kind
def test_derivatives_equal_those_of_the_unrolled_loop(kind: dict[str, Any]) -> None:
    for n in (0, 1, 2, 3, 5, 12):
        close(effax.grad(powers)(1.3, n, **kind), effax.grad(unrolled)(1.3, n))
    compiled = effax.jit(lambda x, n: effax.value_and_grad(powers)(x, n, **kind))
    for n in (0, 7):
        close(compiled(1.3, n), effax.value_and_grad(unrolled)(1.3, n))


@pytest.mark.slow
@each_kind
def test_all_transformations_agree(kind: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        return powers(x, 4, **kind)

    wanted = effax.grad(unrolled)(0.8, 4)
    close(effax.vjp(f, 0.8)[1](1.0)[0], wanted)
    close(effax.linearize(f, 0.8)[1](1.0), wanted)
    close(effax.jacrev(f)(0.8), wanted)
    close(effax.jacfwd(f)(0.8), wanted)
    close(effax.hessian(f)(0.8), effax.hessian(unrolled)(0.8, 4))
    close(effax.grad(effax.grad(f))(0.8), effax.hessian(unrolled)(0.8, 4))
    close(effax.grad(effax.checkpoint(f))(0.8), wanted)
    check_grads(f, (0.8,), order=2)


@each_kind
def test_batch_elements_with_different_numbers_of_steps(kind: dict[str, Any]) -> None:
    xs, ns = jnp.array([1.3, 0.4, 1.0]), jnp.array([5, 0, 3])

    def one(x: Any, n: Any) -> Any:
        return powers(x, n, **kind)

    wanted = [float(effax.grad(unrolled)(float(x), int(n))) for x, n in zip(xs, ns, strict=True)]
    close(effax.vmap(effax.grad(one))(xs, ns), wanted)
    close(effax.grad(lambda xs: jnp.sum(effax.vmap(one)(xs, ns)))(xs), wanted)
    _, pull = effax.vjp(lambda xs: effax.vmap(one)(xs, ns), xs)
    close(effax.vmap(pull)(jnp.eye(3))[0], np.diag(wanted))


def test_the_condition_may_depend_on_a_differentiated_value() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda v: v < 100.0, lambda v: v * v, x)

    close(effax.grad(f)(1.7), 16 * 1.7**15)
    close(effax.vmap(effax.grad(f))(jnp.array([1.7, 3.0, 200.0])), [16 * 1.7**15, 8 * 3.0**7, 1.0])


@pytest.mark.slow
def test_loops_in_loops() -> None:
    def inner(i: Any, y: Any, x: Any) -> Any:
        return lax.while_loop(
            lambda v: v[0] < i, lambda v: (v[0] + 1, jnp.sin(v[1]) * x + y * 0.1), (0, y)
        )[1]

    def f(x: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < 4, lambda c: (c[0] + 1, inner(c[0], c[1], x)), (0, x)
        )[1]

    def by_hand(x: Any) -> Any:
        y = x
        for i in range(4):
            first = y
            for _ in range(i):
                y = jnp.sin(y) * x + first * 0.1
        return y

    wanted = effax.grad(by_hand)(1.1)
    close(effax.grad(f)(1.1), wanted)
    close(effax.jit(effax.grad(f))(1.1), wanted)
    close(effax.vmap(effax.grad(f))(jnp.array([1.1, 0.4]))[0], wanted)
    close(effax.grad(effax.grad(f))(1.1), effax.grad(effax.grad(by_hand))(1.1))


@pytest.mark.parametrize("wrap", [lambda f: f, effax.checkpoint, effax.jit])
def test_traced_bounds_in_a_scan(wrap: Callable[[Any], Any]) -> None:
    def step(c: Any, n: Any, x: Any) -> Any:
        return lax.fori_loop(1, n + 1, lambda i, v: jnp.sin(v) * x * i, c)

    def f(x: Any) -> Any:
        c, ys = lax.scan(lambda c, n: (step(c, n, x), c), x, jnp.array([0, 2, 3]))
        return c + ys.sum()

    def by_hand(x: Any) -> Any:
        c, total = x, 0.0
        for n in (0, 2, 3):
            total += c
            for i in range(1, n + 1):
                c = jnp.sin(c) * x * i
        return c + total

    close(effax.grad(wrap(f))(1.1), effax.grad(by_hand)(1.1))


def test_integers_and_trees_are_carried_along() -> None:
    def f(w: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            y: Any = c["y"]
            return {"i": c["i"] + 1, "y": (jnp.tanh(w["a"] @ y[0] + w["b"]),), "k": c["k"] * 2}

        first: Any = {"i": 0, "y": (jnp.ones(2),), "k": jnp.arange(2)}
        return lax.while_loop(lambda c: c["i"] < n, body, first)["y"][0].sum()

    def by_hand(w: Any) -> Any:
        y = jnp.ones(2)
        for _ in range(3):
            y = jnp.tanh(w["a"] @ y + w["b"])
        return y.sum()

    w = {"a": jnp.array([[0.5, -0.2], [0.1, 0.9]]), "b": jnp.array([0.3, -0.1])}
    found, wanted = effax.grad(f)(w, 3), effax.grad(by_hand)(w)
    close(found["a"], wanted["a"])
    close(found["b"], wanted["b"])


# References.


def in_place(x: Any, steps: Callable[[Callable[[Any], Any]], object]) -> Any:
    """Return the result of steps that write a local reference, which is differentiated."""
    acc = effax.new_ref(jnp.zeros(3))

    def body(i: Any) -> Any:
        acc[i] = x * (i + 1.0) * acc[i - 1] + x
        acc[...] += 0.5 * x
        return i + 1

    steps(body)
    return jnp.sum(effax.freeze(acc) ** 2)


@pytest.mark.slow
def test_a_reference_that_the_body_changes_is_differentiated() -> None:
    def looping(x: Any) -> Any:
        return in_place(x, lambda body: lax.while_loop(lambda i: i < 3, body, 0))

    def by_hand(x: Any) -> Any:
        return in_place(x, lambda body: [body(i) for i in range(3)])

    close(effax.grad(looping)(0.7), effax.grad(by_hand)(0.7))
    close(effax.jit(effax.grad(looping))(0.7), effax.grad(by_hand)(0.7))
    close(effax.grad(effax.grad(looping))(0.7), effax.grad(effax.grad(by_hand))(0.7))


@pytest.mark.slow
def test_a_condition_that_changes_a_differentiated_reference() -> None:
    def f(x: Any) -> Any:
        q = effax.new_ref(x)

        def again(i: Any) -> Any:
            q[...] = q[...] * x
            return i < 3

        lax.while_loop(again, lambda i: i + 1, 0)
        return effax.freeze(q)

    close(effax.grad(f)(1.3), 5 * 1.3**4)
    close(effax.jit(effax.grad(f))(1.3), 5 * 1.3**4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, {"max_steps": 9}, {"max_steps": 9, "checkpoint": "all"}])
def test_effects_on_outer_references_happen_once(kind: dict[str, Any]) -> None:
    count = effax.new_ref(0.0)

    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            count[...] += 1.0
            return c[0] + 1, c[1] * x * count[...]

        return lax.while_loop(lambda c: c[0] < 3, body, (0, x), **kind)[1]

    close(effax.grad(f)(2.0), 4 * 2.0**3 * 6)
    assert float(count[...]) == 3.0
    effax.jit(effax.grad(f))(2.0)
    assert float(count[...]) == 6.0


@pytest.mark.parametrize("checkpoint", ["sqrt", "log"])
def test_effects_are_not_recomputed(checkpoint: str) -> None:
    count = effax.new_ref(0.0)

    def body(c: Any) -> Any:
        count[...] += 1.0
        return c * 2

    with pytest.raises(RefError, match="compute it again") as caught:
        lax.while_loop(lambda c: c < 9, body, 1.0, max_steps=9, checkpoint=checkpoint)
    assert "checkpoint='all'" in str(caught.value)
    assert float(count[...]) == 0.0


def loop_with_callback(x: Any, seen: list[int], **kind: Any) -> Any:
    """Return the result of three steps, each of which reads a factor by a callback."""

    def factor(i: Any) -> Any:
        seen.append(int(i))
        return np.float32(2.0)

    def body(c: Any) -> Any:
        k = effax.experimental.io_callback(factor, effax.ShapeDtypeStruct((), "float32"), c[0])
        return c[0] + 1, jnp.sin(c[1]) * x * k

    return lax.while_loop(lambda c: c[0] < 3, body, (0, x), **kind)[1]


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_side_effects_happen_once(compiled: bool) -> None:
    seen: list[int] = []
    derivative = effax.grad(lambda x: loop_with_callback(x, seen, max_steps=5))
    found = (effax.jit(derivative) if compiled else derivative)(1.3)
    assert seen == [0, 1, 2]
    close(found, effax.jvp(lambda x: loop_with_callback(x, [], max_steps=5), (1.3,), (1.0,))[1])


def test_side_effects_are_not_recomputed() -> None:
    seen: list[int] = []
    with pytest.raises(NotApplicable, match="cannot happen a second time") as caught:
        effax.grad(lambda x: loop_with_callback(x, seen))(1.3)
    assert "max_steps" in str(caught.value)
    with pytest.raises(NotApplicable, match="cannot happen a second time"):
        # Also where the derivative of the loop is unused.
        effax.linearize(lambda x: loop_with_callback(x, seen) * 0 + x, 1.3)
    assert seen == []


def test_debug_callbacks_run_once() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            effax.debug.callback(lambda i: seen.append(int(i)), c[0])
            return c[0] + 1, jnp.sin(c[1]) * x

        return lax.while_loop(lambda c: c[0] < 3, body, (0, x))[1]

    close(effax.grad(f)(1.3), effax.grad(unrolled)(1.3, 3))
    assert seen == [0, 1, 2]


def test_the_gradient_of_a_table_is_added_in_place() -> None:
    """Each step reads one row and adds one element to the cotangent; no dense table is built."""

    def f(table: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, jnp.sin(c[1]) * table[c[0] * 3]

        return lax.while_loop(lambda c: c[0] < n, body, (0, 1.0))[1]

    table = jnp.arange(1.0, 10.0)
    found = effax.grad(f)(table, 3)
    close(found, effax.grad(lambda t: jnp.sin(jnp.sin(jnp.sin(1.0) * t[0]) * t[3]) * t[6])(table))
    jaxpr = effax.make_jaxpr(effax.grad(f))(jnp.zeros(5000), 3).jaxpr
    bodies = [j for j in programs_in(jaxpr) if j is not jaxpr]
    made = [v for j in bodies for eqn in j.eqns for v in eqn.outs if v.type.shape == (5000,)]
    assert bodies
    assert not made


# Size of residuals, and number of evaluations.


@pytest.fixture
def sines(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns the number of sines computed since its last call."""
    count = 0
    before = Sin.evaluate

    def counting(self: Sin, *ins: Any) -> Any:
        nonlocal count
        count += 1
        return before(self, *ins)

    def asked() -> int:
        nonlocal count
        found, count = count, 0
        return found

    monkeypatch.setattr(Sin, "evaluate", counting)
    return asked


def again(n: int) -> int:
    """Return the number of steps recomputed in the backward pass over n: n/2, then both parts."""
    return 0 if n < 2 else n // 2 + again(n // 2) + again(n - n // 2)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 16, 100])
def test_work_without_a_bound(sines: Callable[[], int], n: int) -> None:
    effax.grad(powers)(1.3, n)
    # Forward; on the way to each step; and in the step itself.
    assert sines() == n + again(n) + n
    assert again(n) <= n / 2 * np.ceil(np.log2(max(n, 1)))


@pytest.mark.parametrize("n", [1, 10, 100])
def test_work_with_a_bound(sines: Callable[[], int], n: int) -> None:
    counts = {}
    for checkpoint in ("all", "sqrt", "log"):
        effax.grad(powers)(1.3, n, max_steps=100, checkpoint=checkpoint)
        counts[checkpoint] = sines()
    assert counts["all"] == n
    assert counts["sqrt"] == 2 * n
    # 100 is 1·4³ + 2·4² + 1·4: blocks of up to 3 levels.
    assert counts["log"] <= (1 + 3) * n


def test_a_loop_without_residuals_recomputes_nothing(sines: Callable[[], int]) -> None:
    def f(x: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, c[1] * 0.5, jnp.sin(c[2])

        return lax.while_loop(lambda c: c[0] < n, body, (0, x, 1.0))[1]

    assert float(effax.value_and_grad(f)(1.0, 4)[1]) == 0.5**4
    assert sines() == 0
    assert not arrays_of(effax.make_jaxpr(effax.grad(f))(1.0, 4).jaxpr, 2)


def kept(n: int, **kind: Any) -> int:
    """Return the number of elements of the residuals, for a carry of a thousand elements."""
    wide = jnp.full(1000, 0.5)

    def f(x: Any) -> Any:
        return powers(x, n, **kind).sum()

    _, pull = effax.vjp(f, wide)
    return sum(int(np.prod(r.type.shape)) for r in pull.residuals)


def test_memory_without_a_bound_does_not_grow() -> None:
    assert kept(3) == kept(60) <= 3 * 1000 + 10

    def f(x: Any) -> Any:
        return powers(x, 60).sum()

    jaxpr = effax.make_jaxpr(effax.grad(f))(jnp.ones(1000)).jaxpr
    assert max(t.shape[0] for t in arrays_of(jaxpr, 2)) == 32


def test_memory_with_a_bound() -> None:
    n = 64
    assert kept(5, max_steps=n, checkpoint="all") >= 2 * n * 1000
    assert kept(5, max_steps=n, checkpoint="sqrt") <= (isqrt(n) + 2) * 1000 + n
    assert kept(5, max_steps=n, checkpoint="log") <= 5 * 1000 + n
    rows = {}
    for checkpoint in ("all", "sqrt", "log"):

        def f(x: Any, kind: str = checkpoint) -> Any:
            return powers(x, 60, max_steps=n, checkpoint=kind).sum()

        jaxpr = effax.make_jaxpr(effax.grad(f))(jnp.ones(1000)).jaxpr
        rows[checkpoint] = max(t.shape[0] for t in arrays_of(jaxpr, 2))
    assert rows == {"all": n, "sqrt": isqrt(n), "log": 4}


def programs_in(jaxpr: Jaxpr) -> list[Jaxpr]:
    """Return the program and all its nested subjaxprs."""
    return [jaxpr, *[j for eqn in jaxpr.eqns for h in eqn.prim.subjaxprs() for j in programs_in(h)]]


def arrays_of(jaxpr: Jaxpr, ndim: int) -> list[Type]:
    """Return the types of results with ``ndim`` axes, including those in subjaxprs."""
    return [
        v.type
        for j in programs_in(jaxpr)
        for eqn in j.eqns
        for v in eqn.outs
        if len(v.type.shape) == ndim
    ]


# The bound.


@each_kind
def test_the_values_are_those_of_the_loop(kind: dict[str, Any]) -> None:
    for n in (0, 1, 5, 12, 20):
        taken = min(n, kind.get("max_steps", n))
        close(powers(1.3, n, **kind), unrolled(1.3, taken))


@pytest.mark.parametrize("checkpoint", ["all", "sqrt", "log", None])
def test_the_loop_ends_after_max_steps(checkpoint: str | None) -> None:
    for most in (0, 1, 2, 3, 4, 5, 16, 17, 23):
        count = lax.while_loop(
            lambda c: c < 20, lambda c: c + 1, 0, max_steps=most, checkpoint=checkpoint
        )
        assert int(count) == min(most, 20)


def test_bad_bounds() -> None:
    def loop(**kind: Any) -> Any:
        return lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0, **kind)

    with pytest.raises(BadArgument, match="max_steps is negative"):
        loop(max_steps=-1)
    with pytest.raises(BadArgument, match="max_steps must be an integer"):
        loop(max_steps=1.5)
    with pytest.raises(BadArgument, match="unknown checkpoint") as caught:
        loop(max_steps=3, checkpoint="linear")
    assert "'sqrt'" in str(caught.value)
    for checkpoint in ("all", "sqrt"):
        with pytest.raises(BadArgument, match="needs a bound") as caught:
            loop(checkpoint=checkpoint)
        assert "max_steps" in str(caught.value)
    assert int(loop(checkpoint="log")) == 3
