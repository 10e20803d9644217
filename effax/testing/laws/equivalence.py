"""Compare two programs on ordinary inputs and on inputs with special values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.testing.generate.special_values import identical, special_values, tied_values
from effax.testing.generate.values import (
    Differs,
    Outcome,
    check_outcomes,
    is_chaotic_on,
    random_inputs,
    run,
    shown,
)


def special_inputs(types: Sequence[Type], seed: int, extremes: bool) -> Iterator[list[Value]]:
    """Yield inputs with special values: in one input alone, then in most; then with ties.

    Args:
        types: the types of the inputs.
        seed: determines the positions.
        extremes: whether values that overflow and underflow are included.
    """
    rng = np.random.default_rng([seed, 7])
    sparse = random_inputs(types, seed)
    if not sparse:
        return
    i = int(rng.integers(len(sparse)))
    sparse[i] = _with_specials(rng, types[i], sparse[i], extremes)
    yield sparse
    dense = random_inputs(types, seed + 1)
    yield [
        _with_specials(rng, t, x, extremes) if rng.random() < 0.7 else x
        for t, x in zip(types, dense, strict=True)
    ]
    yield [tied_values(rng, t) for t in types]


def _with_specials(rng: np.random.Generator, type_: Type, x: Value, extremes: bool) -> Value:
    chosen = rng.random(x.shape) < 0.6
    return np.asarray(np.where(chosen, special_values(rng, type_, extremes), x), x.dtype)


def check_same_meaning(first: Jaxpr, second: Jaxpr, seed: int, exact: bool = False) -> None:
    """Raise AssertionError unless the programs agree on several inputs.

    Args:
        first: the expected program.
        second: the other one.
        seed: the seed of the inputs.
        exact: whether they must agree bit by bit; else up to rounding, on inputs without extremes,
            and unless rounding decides the results of the first.
    """
    types = first.in_types
    inputs = random_inputs(types, seed)
    expected, found = run(first, inputs), run(second, inputs)
    if exact:
        check_bits(expected, found, inputs)
    else:
        check_outcomes(expected, found)
    for inputs in special_inputs(types, seed, extremes=exact):
        try:
            expected = run(first, inputs)
        except Exception:  # noqa: BLE001  # inputs on which the first program fails are skipped
            continue
        found = run(second, inputs)
        if exact:
            check_bits(expected, found, inputs)
        else:
            _check_near(first, expected, found, inputs, seed)


def _check_near(
    jaxpr: Jaxpr, expected: Outcome, found: Outcome, inputs: Sequence[Value], seed: int
) -> None:
    try:
        check_outcomes(expected, found)
    except Differs as error:
        if is_chaotic_on(jaxpr, inputs, np.random.default_rng(seed)):
            return
        # Not ``Differs``, for which the law would be tried for chaos on other inputs.
        raise AssertionError(f"{error}\n{_on(inputs)}") from None


def check_bits(expected: Outcome, found: Outcome, inputs: Sequence[Value]) -> None:
    """Raise AssertionError unless two outcomes are equal, bit by bit."""
    for what, xs, ys in (
        ("result", expected.outs, found.outs),
        ("final content of reference", expected.contents, found.contents),
    ):
        assert len(xs) == len(ys), f"expected {len(xs)} of {what}, found {len(ys)}"
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if not identical(np.asarray(x), np.asarray(y)):
                raise AssertionError(
                    f"{what} {i} differs, bit by bit:\n  expected {shown(x)}\n"
                    f"  found    {shown(y)}\n{_on(inputs)}"
                )


def _on(inputs: Sequence[Value]) -> str:
    return "on the inputs\n" + "\n".join(f"  {shown(x)}" for x in inputs)
