"""Results that are an operand unchanged."""

from __future__ import annotations

from typing import Any

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.analysis.passing import passed_inputs, passed_results


def passed(f: Any, *args: Any) -> tuple[object, ...]:
    return passed_inputs(effax.make_jaxpr(f)(*args).jaxpr)


def test_inputs_and_constants_are_passed() -> None:
    assert passed(lambda x, y: (y, x + 1, x), 1.0, 2.0) == (1, None, 0)
    (constant,) = passed(lambda x: 3, 1.0)
    assert getattr(constant, "value", None) == 3


def test_branches_pass_what_all_return() -> None:
    def f(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda x, y: (x, x, y, 1), lambda x, y: (x, y, y + 1, 1), x, y)

    jaxpr = effax.make_jaxpr(f)(True, 1.0, 2.0).jaxpr
    found = passed_results(jaxpr.eqns[-1].prim)
    assert (*found[:3], getattr(found[3], "value", None)) == (1, None, None, 1)


def test_loops_pass_carries_that_the_body_returns_in_their_place() -> None:
    def swapped(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: (c[1], c[0], c[2]), (x, y, x + y))

    assert passed(lambda x, y: lax.fori_loop(0, 3, lambda i, c: c, (x, y)), 1.0, 2.0) == (0, 1)
    assert passed(swapped, 1.0, 2.0) == (None, None, None)
    prim = effax.make_jaxpr(swapped)(1.0, 2.0).jaxpr.eqns[-1].prim
    assert passed_results(prim) == (None, None, None, 3)
    # A stacked element is not the operand, nor is a const that becomes the carry.
    assert passed(lambda x: lax.scan(lambda c, x: (c, x), 0, x)[1], jnp.ones(2)) == (None,)
    assert passed(lambda x, y: lax.fori_loop(0, 3, lambda i, c: y, x), 1.0, 2.0) == (None,)


def test_nested_calls_are_followed() -> None:
    def f(n: Any, x: Any) -> Any:
        def body(c: Any) -> Any:
            same = effax.jit(lambda x: lax.cond(x > 0, lambda x: x, lambda x: x, x))(c[1])
            return c[0] + 1, same, c[1] * 2

        return lax.while_loop(lambda c: c[0] < n, body, (0, x, x))

    # The carries are the counter, the operand that is passed, and one that is computed.
    assert passed(f, 3, 1.0) == (None, 1, None)
