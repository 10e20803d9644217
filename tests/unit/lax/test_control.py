"""Control flow: values, references, differentiation, batching, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped, RefError


def test_scan_carries_and_stacks() -> None:
    def step(c: Any, x: Any) -> tuple[effax.Array, effax.Array]:
        return c + x, c * x

    for scan in (lax.scan, effax.jit(lax.scan, static_argnums=0)):
        carry, ys = scan(step, 0.0, jnp.arange(4.0))
        assert float(carry) == 6.0
        np.testing.assert_array_equal(ys, [0, 0, 2, 9])


@pytest.mark.slow
def test_scan_reversed_unrolled_and_empty() -> None:
    def step(c: Any, x: Any) -> tuple[effax.Array, effax.Array]:
        return c * 2 + x, c

    xs = jnp.arange(1.0, 6.0)
    for unroll in (1, 2, 5, True):
        run = effax.jit(lambda xs, u=unroll: lax.scan(step, 1.0, xs, reverse=True, unroll=u))
        carry, ys = run(xs)
        expected, seen = 1.0, []
        for x in reversed(np.asarray(xs)):
            seen.append(expected)
            expected = expected * 2 + x
        assert float(carry) == expected
        np.testing.assert_array_equal(ys, seen[::-1])
    carry, ys = lax.scan(step, 1.0, jnp.zeros(0))
    assert (float(carry), ys.shape) == (1.0, (0,))


def test_scan_over_nothing_needs_a_length() -> None:
    carry, _ = lax.scan(lambda c, _: (c + 1, None), 0, None, length=3)
    assert int(carry) == 3
    with pytest.raises(BadArgument, match="length"):
        lax.scan(lambda c, x: (c, x), 0, None)


def test_scan_with_a_closed_over_reference() -> None:
    total = effax.new_ref(0)

    def step(_: None, x: Any) -> tuple[None, effax.Array]:
        total[...] += x
        return None, x * 2

    _, ys = lax.scan(step, None, jnp.arange(10))
    assert int(total[...]) == 45
    np.testing.assert_array_equal(ys, np.arange(10) * 2)
    effax.jit(lambda: lax.scan(step, None, jnp.arange(10)))()
    assert int(total[...]) == 90


def test_scan_over_a_reference_passes_views() -> None:
    def step(_: None, row: effax.Ref) -> tuple[None, effax.Array]:
        row[...] *= 2.0
        return None, jnp.sum(row[...])

    ref = effax.new_ref(jnp.arange(6.0).reshape(3, 2))
    _, sums = lax.scan(step, None, ref)
    np.testing.assert_array_equal(sums, [2, 10, 18])
    effax.jit(lambda r: lax.scan(step, None, r))(ref)
    np.testing.assert_array_equal(ref[...], np.arange(6.0).reshape(3, 2) * 4)


def test_a_weak_carry_takes_the_type_of_the_body() -> None:
    start: Any = 0.0
    carry, _ = lax.scan(lambda c, x: (c + x, None), start, jnp.ones(3, jnp.bfloat16))
    assert carry.dtype == jnp.bfloat16


def test_a_carry_that_changes_its_type_is_named() -> None:
    with pytest.raises(IllTyped, match=r"init\['n'\]") as caught:
        lax.scan(lambda c, _: ({"n": c["n"] * 1.5}, None), {"n": jnp.zeros((), "int32")}, None, 2)
    assert "i32[]" in str(caught.value)
    assert "f32[]" in str(caught.value)
    with pytest.raises(IllTyped, match="structure"):
        lax.scan(lambda c, _: ((c, c), None), 1.0, None, 2)  # type: ignore[arg-type, return-value]  # that is the point
    with pytest.raises(IllTyped, match="pair"):
        lax.scan(lambda c, _: c, 1.0, None, 2)  # type: ignore[arg-type, return-value]  # that is the point


def test_references_are_not_carried() -> None:
    ref = effax.new_ref(1.0)
    with pytest.raises(RefError, match="init"):
        lax.scan(lambda c, _: (c, None), ref, None, 2)
    with pytest.raises(RefError):
        lax.while_loop(lambda c: True, lambda c: c, ref)


def test_while_loop_and_fori_loop() -> None:
    for wrap in (lambda f: f, effax.jit):
        assert int(wrap(lambda n: lax.while_loop(lambda i: i < n, lambda i: i + 3, 0))(10)) == 12
        assert int(wrap(lambda n: lax.fori_loop(0, n, lambda i, t: t + i, 0))(5)) == 10
        assert int(wrap(lambda: lax.fori_loop(2, 5, lambda i, t: t + i, 0))()) == 9


def test_a_condition_sees_what_the_body_writes() -> None:
    def run() -> Any:
        ref = effax.new_ref(0)

        def body(n: Any) -> Any:
            ref[...] += 1
            return n + 2

        return lax.while_loop(lambda n: ref[...] < 5, body, 0)

    assert int(run()) == 10
    assert int(effax.jit(run)()) == 10


def test_static_bounds_differentiate_in_reverse() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, v: v * x, 1.0)

    assert float(effax.grad(f)(2.0)) == 12.0
    assert float(effax.jit(effax.grad(f))(2.0)) == 12.0


def test_forward_mode_through_while() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda v: v < 100.0, lambda v: v * x, x)

    out, dot = effax.jvp(f, (3.0,), (1.0,))
    assert (float(out), float(dot)) == (243.0, 5 * 81.0)


def test_cond_and_switch() -> None:
    for wrap in (lambda f: f, effax.jit):
        choose = wrap(lambda p, x: lax.cond(p, lambda v: v + 1, lambda v: v - 1, x))
        assert [float(choose(True, 1.0)), float(choose(False, 1.0))] == [2.0, 0.0]
        pick = wrap(lambda i: lax.switch(i, [lambda: 10, lambda: 20, lambda: 30]))
        assert [int(pick(i)) for i in (-5, 0, 1, 2, 9)] == [10, 10, 20, 30, 30]


def test_cond_with_references_in_its_branches() -> None:
    a, b = effax.new_ref(0.0), effax.new_ref(0.0)

    def first(x: Any) -> Any:
        a[...] += x
        return x

    def second(x: Any) -> Any:
        b[...] = a[...] + x
        return x * 2

    for wrap in (lambda f: f, effax.jit):
        run = wrap(lambda p, x: lax.cond(p, first, second, x))
        assert float(run(True, 2.0)) == 2.0
        assert float(run(False, 2.0)) == 4.0
    assert (float(a[...]), float(b[...])) == (4.0, 6.0)


def test_branches_must_agree() -> None:
    with pytest.raises(IllTyped, match="false_fun"):
        lax.cond(True, lambda: (1.0, 2.0), lambda: 1.0)
    with pytest.raises(IllTyped, match="true_fun"):
        lax.cond(True, lambda: jnp.ones(2), lambda: jnp.ones(3))
    with pytest.raises(IllTyped, match="scalar"):
        lax.cond(jnp.ones(2) > 0, lambda: 1.0, lambda: 2.0)


@pytest.mark.slow
def test_gradients_through_cond_and_scan() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, i: Any) -> tuple[effax.Array, effax.Array]:
            c = lax.cond(i % 2 == 0, jnp.sin, lambda v: v * x, c)
            return c, c * c

        c, ys = lax.scan(step, x, jnp.arange(4))
        return c + jnp.sum(ys)

    x, h = 0.7, 1e-3
    numeric = (float(f(x + h)) - float(f(x - h))) / (2 * h)
    assert float(effax.grad(f)(x)) == pytest.approx(numeric, rel=1e-3)
    assert float(effax.jit(effax.grad(f))(x)) == pytest.approx(numeric, rel=1e-3)
    batch = effax.vmap(effax.grad(f))(jnp.array([0.7, 0.2]))
    assert float(batch[0]) == pytest.approx(numeric, rel=1e-3)


def test_vmap_of_loops_with_batched_predicates() -> None:
    limits = jnp.array([1, 5, 0, 8])

    def count(n: Any) -> Any:
        return lax.while_loop(lambda i: i < n, lambda i: i + 2, 0)

    np.testing.assert_array_equal(effax.vmap(count)(limits), [2, 6, 0, 8])
    np.testing.assert_array_equal(effax.jit(effax.vmap(count))(limits), [2, 6, 0, 8])


@pytest.mark.parametrize("size", [0, 1, 2, 4, 5, 9])
@pytest.mark.parametrize("n", [5, 4, 1, 0])
def test_map_in_batches(n: int, size: int) -> None:
    """A batch size of 0 is that of all elements."""
    x = jnp.arange(n * 2.0).reshape(n, 2)
    for run in (lambda f: f, effax.jit):
        found = run(
            lambda x: lax.map(lambda t: (t[0].sum(), -t[1]), (x, x[:, 0]), batch_size=size)
        )(x)
        np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(x).sum(1))
        np.testing.assert_array_equal(np.asarray(found[1]), -np.asarray(x)[:, 0])


def test_batch_sizes_of_map_that_are_none() -> None:
    for size in (-1, 1.5):
        with pytest.raises(BadArgument, match="batch_size"):
            lax.map(lambda x: x, jnp.ones(3), batch_size=size)  # type: ignore[arg-type]  # refused


def test_a_carry_of_a_python_number_takes_the_32_bits_of_the_body() -> None:
    def outer(i: Any) -> Any:
        # The carry of the inner loop is an unknown number of weak type and 64 bits.
        return lax.while_loop(lambda x: x < 3, lambda x: x + jnp.int32(1), i * 1)

    with effax.enable_x64(True):
        found = lax.fori_loop(0, 2, lambda _, c: outer(c), 0)
        assert (int(found), found.dtype) == (3, jnp.int32)


def test_a_body_whose_weak_carry_becomes_strong_is_traced_once() -> None:
    traces: list[Any] = []

    def body(c: Any, x: Any) -> Any:
        traces.append(c)
        return jnp.sin(c) + x, c

    c, ys = lax.scan(body, 0.0, jnp.arange(2.0))
    assert len(traces) == 1
    assert not c.weak_type
    assert not ys.weak_type
    assert ys.tolist() == [0, 0]
    assert not lax.while_loop(lambda c: c < 2, lambda c: c + jnp.float32(1), 0.0).weak_type


@pytest.mark.slow
def test_functions_are_traced_as_often_as_in_jax() -> None:
    traces: Counter[str] = Counter()

    def traced(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Any) -> Any:
            traces[name] += 1
            return f(*args)

        return named

    body = traced("body", lambda c, x: (c + x, c * x))
    count = traced("count", lambda i, c: c + i)
    test, step = traced("test", lambda c: c[0] < 3), traced("step", lambda c: (c[0] + 1, c[1] * 2))
    branch = traced("branch", lambda x: x + 1)
    again = effax.checkpoint(traced("again", lambda x: jnp.sin(x) * x))
    inner = traced("inner", lambda x: x * 2)
    xs = jnp.arange(3.0)

    def everything(x: Any) -> Any:
        total = lax.scan(body, jnp.float32(0), x)[0] + lax.fori_loop(0, 3, count, x)
        total += lax.while_loop(test, step, (0, x))[1]
        total += lax.cond(x[0] > 0, branch, branch, x) + again(x) + effax.jit(inner)(x)
        return jnp.sum(total)

    everything(xs)
    effax.jit(everything)(xs)
    effax.grad(everything)(xs)
    assert set(traces.values()) == {1}, traces
