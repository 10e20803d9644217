"""The trip counts of loops that count from a literal to a literal."""

from __future__ import annotations

from typing import cast

import pytest

import effax
from effax import extend, lax
from effax.ir import Eqn
from effax.ir.analysis.cost.trips import trip_count


def loop(compare: str, start: int, bound: int, step: int) -> Eqn:
    def test(carry: tuple[effax.Array, effax.Array]) -> effax.Array:
        i, _ = carry
        tests = {"<": i < bound, "<=": i <= bound, ">": i > bound, ">=": i >= bound}
        return {**tests, "!=": i != bound, "~": bound > i}[compare]

    def body(carry: tuple[effax.Array, effax.Array]) -> tuple[effax.Array, effax.Array]:
        i, x = carry
        return (i + step if step > 0 else i - -step), x * 2.0

    def run(x: effax.Array) -> object:
        return lax.while_loop(test, body, (cast(effax.Array, start), x))

    return effax.make_jaxpr(run)(1.0).jaxpr.eqns[-1]


@pytest.mark.parametrize(
    ("compare", "start", "bound", "step"),
    [
        ("<", 0, 10, 1),
        ("<", 0, 10, 3),
        ("~", 2, 10, 3),
        ("<=", 1, 10, 3),
        (">", 10, 0, -3),
        (">=", 9, 0, -3),
        ("!=", 0, 12, 4),
        ("<", 5, 5, 1),
    ],
)
def test_counting_loops(compare: str, start: int, bound: int, step: int) -> None:
    eqn = loop(compare, start, bound, step)
    # Each iteration doubles the second carry.
    outs = extend.eval_eqn(eqn, *[getattr(a, "value", 1.0) for a in eqn.ins])
    assert trip_count(eqn) == int(outs[-1]).bit_length() - 1


def test_loops_that_do_not_count() -> None:
    assert trip_count(loop("<", 0, 10, -1)) is None
    assert trip_count(loop("!=", 0, 10, 3)) is None
    assert trip_count(loop("<=", 0, 2**31 - 1, 1)) is None
    changing = effax.make_jaxpr(lambda x: lax.while_loop(lambda x: x < 10, lambda x: x + 1, x))(3)
    assert trip_count(changing.jaxpr.eqns[-1]) is None
