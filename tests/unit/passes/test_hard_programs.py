"""Every pass on adversarial programs: code that may not run, observed effects, corner cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import debug, lax
from effax.experimental import io_callback
from effax.ir.eval.numpy import evaluate
from effax.ir.syntax import Jaxpr
from effax.passes import ALL, Pass, optimize, unroll_to, unwrap
from effax.passes.pipeline import AnyPass
from effax.testing import laws

F32 = jax.ShapeDtypeStruct((), jnp.float32)
PASSES: tuple[AnyPass, ...] = (*ALL, unroll_to(50), optimize)

table = jax.new_ref(jnp.arange(3.0))
sums = jax.new_ref(jnp.zeros(3))


def endless(x: Any) -> Any:
    return lax.while_loop(lambda v: v < 1.0, lambda v: v * 1.0, x * 0)


def boom(x: Any) -> Any:
    raise ValueError("this must not run")


def raising(x: Any) -> Any:
    return jax.pure_callback(boom, F32, x)


def endless_in_no_round(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] + endless(x)), (0, x))[1]


def endless_in_no_row(x: Any) -> Any:
    return lax.scan(lambda c, _: (c + endless(x), None), x, None, length=0)[0]


def endless_in_a_branch(x: Any) -> Any:
    return lax.cond(x > 10.0, endless, lambda x: x, x)


def raising_in_no_round(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] + raising(2.0)), (0, x))[1]


def raising_in_no_row(x: Any) -> Any:
    return lax.scan(lambda c, _: (c + raising(1.0), None), x, None, length=0)[0]


def raising_in_a_branch(x: Any) -> Any:
    return lax.cond(x > 10.0, raising, lambda x: x, x)


@jax.jit
def exchanged(x: Any) -> Any:
    before = table[0]
    table[0] = before + x
    return before


def calls_on_one_reference(x: Any) -> Any:
    first, once, second = table[0], exchanged(x), table[0]
    return first, once, second, exchanged(x), table[0]


def references_in_nested_control_flow(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        table[i % 3] = c

        @jax.jit
        def inner(v: Any) -> Any:
            sums[i % 3] += v
            return sums[0] + table[0]

        total = inner(c)
        return lax.cond(total > 3.0, lambda: c + table[1], lambda: c - sums[2])

    return lax.fori_loop(0, 4, body, x)


def a_reference_that_is_consumed(x: Any) -> Any:
    own = jax.new_ref(jnp.zeros(2))
    own[0] = x
    own[1] = own[0] * 2
    own[0] += own[1]
    own[1] = lax.cond(x > 0, lambda: own[0] * 2, lambda: own[1])
    return jax.freeze(own)


def nothing_along_an_axis(x: Any) -> Any:
    empty = jax.new_ref(jnp.zeros((0, 2)))
    empty[...] = empty[...] + x
    empty[...] += 1.0
    total, rows = lax.scan(lambda c, row: (c + row.sum(), row * c), x, jnp.zeros((0, 3)))
    return empty[...], total, rows, jnp.zeros((0,)).sum() + x


@jax.custom_jvp
def with_a_rule(x: Any) -> Any:
    return jnp.sin(x) * 1.0


with_a_rule.defjvp(lambda p, t: (with_a_rule(p[0]), t[0] * 3.0))


@jax.custom_vjp
def product(x: Any, y: Any) -> Any:
    return x * y


product.defvjp(
    lambda x, y: (product(x, y), (x, y)), lambda kept, g: (g * kept[1] + 0.0, g * kept[0])
)


def rules_of_ones_own(x: Any) -> Any:
    a, b = with_a_rule(x), with_a_rule(x)
    c = product(a, b) + product(a, b)
    return lax.fori_loop(0, 3, lambda i, v: product(v, with_a_rule(x)), c)


def corners_of_dtypes(x: Any) -> Any:
    small, unsigned = x.astype(jnp.int8), x.astype(jnp.uint8)
    half, brain = x.astype(jnp.float16), x.astype(jnp.bfloat16)
    return (
        *(
            small * jnp.int8(1) + jnp.int8(0),
            jnp.negative(-unsigned),
            unsigned - unsigned,
            ~(~small),
        ),
        *(brain.astype(jnp.float32).astype(jnp.bfloat16), half.astype(jnp.bfloat16)),
        *(half.astype(jnp.bfloat16).astype(jnp.float16), small // jnp.int8(1), x * -1, x + 0.0),
        *((x > 1) == True, (x > 1) ^ (x > 1), jnp.maximum(x, x), x - x, x * 0),  # noqa: E712
    )


PROGRAMS: tuple[Callable[[Any], Any], ...] = (
    endless_in_no_round,
    endless_in_no_row,
    endless_in_a_branch,
    raising_in_no_round,
    raising_in_no_row,
    raising_in_a_branch,
    calls_on_one_reference,
    references_in_nested_control_flow,
    a_reference_that_is_consumed,
    nothing_along_an_axis,
    rules_of_ones_own,
)


def traced(f: Callable[[Any], Any], x: object = 1.0) -> Jaxpr:
    return jax.make_jaxpr(f)(x).jaxpr


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_pass_keeps_its_claims(f: Callable[[Any], Any]) -> None:
    jaxpr = traced(f)
    for pass_ in PASSES:
        if "raising" in f.__name__ and "branch" in f.__name__:
            evaluate(unwrap(pass_(jaxpr)), [np.array(1.0, np.float32)])
        else:
            laws.pass_keeps_its_guarantees(jaxpr, 0, pass_)


@pytest.mark.slow
def test_every_pass_keeps_its_claims_in_every_dtype() -> None:
    jaxpr = traced(corners_of_dtypes, np.array([1.5, -3.25, 100.7], np.float32))
    for pass_ in PASSES:
        for seed in range(3):
            laws.pass_keeps_its_guarantees(jaxpr, seed, pass_)


log: list[tuple[str, float]] = []


def recorder(name: str) -> Callable[[Any], Any]:
    def record(value: Any) -> Any:
        log.append((name, float(value)))
        return np.float32(value)

    return record


def observed(jaxpr: Jaxpr) -> tuple[Sequence[object], list[tuple[str, float]]]:
    log.clear()
    outs = [np.asarray(x).tolist() for x in evaluate(jaxpr, [np.array(1.5, np.float32)])]
    return outs, list(log)


def twice_the_same(x: Any) -> Any:
    same = recorder("same")
    a, b = io_callback(same, F32, x), io_callback(same, F32, x)
    debug.callback(recorder("debug"), x)
    debug.callback(recorder("debug"), x)
    return a + b


def in_every_round(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return c + io_callback(recorder("round"), F32, x, ordered=True)

    return lax.fori_loop(0, 3, body, x)


def in_a_condition(x: Any) -> Any:
    def more(c: Any) -> Any:
        return io_callback(recorder("asked"), F32, x, ordered=True) + c[0] < 4

    return lax.while_loop(more, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


@pytest.mark.parametrize("f", [twice_the_same, in_every_round, in_a_condition])
def test_the_host_is_called_as_often(f: Callable[[Any], Any]) -> None:
    jaxpr = traced(f)
    outs, calls = observed(jaxpr)
    assert len(calls) > 2
    for pass_ in PASSES:
        found, others = observed(unwrap(pass_(jaxpr)))
        assert (found, sorted(others)) == (outs, sorted(calls)), pass_


def test_a_function_that_may_raise_leaves_a_loop_that_runs() -> None:
    calls: list[float] = []

    def noted(x: Any) -> Any:
        calls.append(float(x))
        return x

    jaxpr = traced(
        lambda x: lax.fori_loop(0, 5, lambda i, c: c + jax.pure_callback(noted, F32, x), x)
    )
    hoist: Pass = next(pass_ for pass_ in ALL if pass_.name == "hoist")
    assert evaluate(unwrap(hoist(jaxpr)), [np.array(2.0, np.float32)]) == [12.0]
    assert calls == [2.0]
