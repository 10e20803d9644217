"""``vmap`` of branches and loops under batched predicates: which results are batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument

Unary = Callable[[Any, Any], Any]

RUNS = pytest.mark.parametrize("how", [lambda f: f, effax.jit], ids=["eager", "jit"])

PASSES: dict[str, Unary] = {
    "while": lambda w, n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1]), (0, w))[1],
    "fori": lambda w, n: lax.fori_loop(0, n, lambda i, s: (s[0] + 1, s[1]), (0, w))[1],
    "cond": lambda w, n: lax.cond(n > 1, lambda w, n: (w, n), lambda w, n: (w, n + 1), w, n)[0],
    "closed_over": lambda w, n: lax.cond(n > 1, lambda: w, lambda: w),
    "constant": lambda w, n: lax.cond(n > 1, lambda: 1.0, lambda: 1.0) * w,
    "switch": lambda w, n: lax.switch(n, [lambda w: w, lambda w: w, lambda w: w], w),
    "scan": lambda w, n: lax.scan(
        lambda c, x: (lax.cond(x > n, lambda c: c, lambda c: c, c), None), w, jnp.arange(3)
    )[0],
    "nested": lambda w, n: lax.cond(
        n > 1,
        lambda w: lax.fori_loop(0, n, lambda i, s: effax.jit(lambda s: s)(s), w),
        lambda w: lax.scan(lambda c, _: (c, None), w, None, 3)[0],
        w,
    ),
    "loop_in_loop": lambda w, n: lax.while_loop(
        lambda s: s[0] < n,
        lambda s: (s[0] + 1, lax.fori_loop(0, s[0], lambda i, s: s, s[1])),
        (0, w),
    )[1],
}


@RUNS
@pytest.mark.parametrize("f", PASSES.values(), ids=PASSES)
def test_what_is_passed_through_is_not_batched(f: Unary, how: Callable[[Any], Any]) -> None:
    made = how(effax.vmap(f, (None, 0), None))(1.5, jnp.arange(3))
    assert (made.shape, float(made)) == ((), 1.5)


def test_what_a_predicate_decides_is_batched() -> None:
    for f in (
        lambda w, n: lax.cond(n > 1, lambda w: w, lambda w: 2 * w, w),
        lambda w, n: lax.fori_loop(0, n, lambda i, s: (s[1], s[0]), (w, 2.0))[0],
        lambda w, n: lax.fori_loop(0, n, lambda i, s: 1.0, w),
    ):
        with pytest.raises(BadArgument, match="is batched"):
            effax.vmap(f, (None, 0), None)(1.5, jnp.arange(3))


def test_results_beside_a_passed_operand_are_right() -> None:
    def f(w: Any, n: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1], s[2] * s[1]), (0, w, 1.0)
        )

    count, w, power = effax.vmap(f, (None, 0), (0, None, 0))(2.0, jnp.arange(4))
    np.testing.assert_array_equal(count, [0, 1, 2, 3])
    assert float(w) == 2.0
    np.testing.assert_array_equal(power, [1, 2, 4, 8])
