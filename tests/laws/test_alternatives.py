"""Laws of the values that branches, carries and initial values unify: kept, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError

PYTHON = (True, 0, -1, 300, 1.5, float("inf"), 2j)
STRONG = tuple(
    jnp.asarray(value, dtype)
    for dtype, value in (
        ("bool", True), ("int8", -3), ("int32", 70000), ("uint8", 200), ("uint32", 2**30),
        ("bfloat16", 2.5), ("float32", 1e30), ("complex64", 1j),
    )
)  # fmt: skip
VALUES = (*PYTHON, *STRONG)

Choose = Callable[[Any, Any], Any]
"""A function of two alternatives whose result is the first one, in the dtype of both."""

UNKNOWN: dict[str, Choose] = {
    "cond": lambda a, b: lax.cond(True, lambda a, b: a, lambda a, b: b, a, b),
    "switch": lambda a, b: lax.switch(2, [lambda: b, lambda: b, lambda: a]),
    "while_loop": lambda a, b: lax.while_loop(lambda c: False, lambda c: b, a),
    "fori_loop": lambda a, b: lax.fori_loop(0, 0, lambda i, c: b, a),
    "scan": lambda a, b: lax.scan(lambda c, _: (b, None), a, None, 0)[0],
    "result_of_body": lambda a, b: lax.fori_loop(0, 1, lambda i, c: a, b),
    "where": lambda a, b: jnp.where(True, a, b),
    "select": lambda a, b: jnp.select([True], [a], b),
    "stack": lambda a, b: jnp.stack([a, b])[0],
    "reduce": lambda a, b: lax.reduce(jnp.asarray([b]), a, lambda a, b: a, (0,)),
    "fill": lambda a, b: jnp.asarray([b]).at[jnp.array([9])].get(mode="fill", fill_value=a)[0],
}


def kind(x: Any) -> str:
    """Return "bool" or "number"."""
    return "bool" if jnp.asarray(x).dtype == np.bool_ else "number"


def check(choose: Choose, first: Any, second: Any, what: str) -> bool:
    """Raise AssertionError unless the first value is kept. Return whether it was accepted."""
    try:
        made = choose(first, second)
    except EffaxError:
        return False
    message = f"{what} of {first!r} and {second!r} is {made!r}"
    with np.errstate(all="ignore"):
        have, want = np.asarray(made, complex), np.asarray(first, complex)
        close = abs(have - want) <= 0.01 * abs(want)
    assert close or have == want, message
    return True


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_alternative_keeps_its_value_or_is_refused(name: str) -> None:
    """choose(a, b) = a, for values of all dtypes, or it raises; the same under jit."""
    choose = UNKNOWN[name]
    accepted = 0
    for first in VALUES:
        for second in VALUES:
            accepted += check(choose, first, second, name)
    assert accepted > len(VALUES)


@pytest.mark.parametrize("name", ["cond", "switch", "while_loop", "fori_loop", "scan"])
def test_control_flow_keeps_booleans_apart_from_numbers(name: str) -> None:
    """choose(a, b) raises where exactly one of a and b is a boolean."""
    for first in VALUES:
        for second in VALUES:
            if kind(first) != kind(second):
                with pytest.raises(EffaxError):
                    UNKNOWN[name](first, second)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_alternative_is_treated_alike_under_jit(name: str) -> None:
    choose = UNKNOWN[name]
    rng = np.random.default_rng(len(name))
    for i, j in rng.integers(0, len(VALUES), (6, 2)):
        first, second = VALUES[i], VALUES[j]
        eager = check(choose, first, second, name)
        assert eager == check(
            lambda a, b: effax.jit(lambda: choose(a, b))(), first, second, f"jit of {name}"
        )


def test_the_law_sees_a_promotion_that_loses_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(*_: object, **__: object) -> bool:
        return True

    monkeypatch.setattr("effax.lax.leaves.yields", always)
    monkeypatch.setattr("effax.lax.carries.yields", always)
    for name in ("cond", "switch", "while_loop", "scan"):
        with pytest.raises(AssertionError, match=f"{name} of"):
            test_an_alternative_keeps_its_value_or_is_refused(name)
