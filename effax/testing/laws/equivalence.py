"""Compare two programs on ordinary inputs and on inputs with special values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from effax.ir.dtypes import family
from effax.ir.errors import Unfinished
from effax.ir.eval.bounds import METER
from effax.ir.primitive import Value
from effax.ir.prims import Sort
from effax.ir.recursion import postorder
from effax.ir.syntax import Jaxpr, Lit, Scalar
from effax.ir.types import Type
from effax.testing.generate.special_values import identical, special_values, tied_values
from effax.testing.generate.values import (
    Differs,
    Outcome,
    both,
    check_outcomes,
    elided,
    is_chaotic_on,
    on_inputs,
    random_inputs,
    random_value,
    run_metered,
)
from effax.testing.laws.law import assume
from effax.testing.laws.tolerance import Tolerances, compare


class Agreement(NamedTuple):
    """The required agreement of two programs.

    Attributes:
        exact: bit by bit, and on the largest and smallest numbers too.
        tolerance: the tolerance of results; None: rounding.
        where_finite: only where results are finite and defined.
    """

    exact: bool = False
    tolerance: Tolerances | None = None
    where_finite: bool = False

    @property
    def is_measured(self) -> bool:
        """Return whether errors are measured against double precision."""
        return self.tolerance is not None or self.where_finite


def special_inputs(
    types: Sequence[Type],
    seed: int,
    extremes: bool = False,
    near: Sequence[Scalar] = (),
    ties: bool = False,
) -> Iterator[list[Value]]:
    """Yield inputs with special values: in one input alone, in most, in all; then with ties.

    Args:
        types: the types of the inputs.
        seed: determines the positions.
        extremes: whether values that overflow and underflow are included.
        near: numbers, at and around which inputs are tried too.
        ties: whether inputs are tried of which one has equal elements, and the others do not.
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
    yield [special_values(rng, t, extremes) for t in types]
    if near:
        yield [_near(rng, t, near) for t in types]
    if ties:
        yield from _with_ties(rng, types)


def _with_ties(rng: np.random.Generator, types: Sequence[Type]) -> Iterator[list[Value]]:
    """Yield inputs of which one has equal elements and the others do not, and the reverse."""
    for i, is_tied in product(range(min(len(types), MOST_TIED)), (True, False)):
        values = [np.array(random_value(rng, t)) for t in types]
        yield [
            np.full_like(x, x.flat[0]) if x.size and (j == i) == is_tied else x
            for j, x in enumerate(values)
        ]


def _with_specials(rng: np.random.Generator, type_: Type, x: Value, extremes: bool) -> Value:
    chosen = rng.random(x.shape) < 0.6
    return np.asarray(np.where(chosen, special_values(rng, type_, extremes), x), x.dtype)


def _near(rng: np.random.Generator, type_: Type, numbers: Sequence[Scalar]) -> Value:
    """Return an array of some of the numbers, and of those one above and below."""
    if family(type_.dtype) == "void":
        return np.zeros(type_.shape, type_.dtype)
    wide = np.asarray(numbers, np.complex128)
    picked = wide[rng.integers(0, len(wide), type_.shape)] + rng.integers(-1, 2, type_.shape)
    with np.errstate(all="ignore"):
        if family(type_.dtype) == "complex":
            return np.asarray(picked, type_.dtype)
        real = np.nan_to_num(np.real(picked), posinf=1e3, neginf=-1e3)
        return np.asarray(np.abs(real) if family(type_.dtype) == "uint" else real).astype(
            type_.dtype
        )


MOST_TIED: Final = 4
"""The number of inputs that have equal elements while the others do not."""


def has_payload(jaxpr: Jaxpr) -> bool:
    """Return whether a sort in the program moves operands that are no keys: ties show in these."""
    return any(
        isinstance(eqn.prim, Sort) and len(eqn.ins) > eqn.prim.num_keys
        for one in postorder(jaxpr)
        for eqn in one.eqns
    )


MOST_NUMBERS: Final = 16
"""The number of literals of programs near which inputs are tried."""


def literals_of(*programs: Jaxpr) -> list[Scalar]:
    """Return the numbers in programs, those of subjaxprs included; the first ones."""
    found: dict[Scalar, None] = {}
    for jaxpr in programs:
        for one in reversed(postorder(jaxpr)):
            for eqn in one.eqns:
                for a in eqn.ins:
                    if isinstance(a, Lit) and family(a.type.dtype) not in ("bool", "void"):
                        found[a.value] = None
    return [*found][:MOST_NUMBERS]


ROUNDED: Final = Agreement()
"""Agreement up to rounding."""


def check_same_meaning(
    first: Jaxpr, second: Jaxpr, seed: int, agreement: Agreement = ROUNDED
) -> None:
    """Raise AssertionError unless the programs agree on several inputs.

    Args:
        first: the expected program.
        second: the other one.
        seed: the seed of the inputs.
        agreement: how closely; by default up to rounding, on inputs without extremes, and unless
            rounding decides the results of the first.

    Raises:
        Unfinished: the first program exceeds a bound of the context on one of the inputs, and
            agrees on the others.
    """
    types = first.in_types
    inputs = random_inputs(types, seed)
    expected, found = _runs(first, second, inputs, may_fail=False)
    conditioned = [0.0]
    if agreement.exact:
        check_bits(expected, found, inputs)
    elif agreement.is_measured:
        conditioned.append(_measured(first, second, inputs, found, agreement))
    else:
        check_outcomes(expected, found)
    unfinished: Unfinished | None = None
    near = literals_of(first, second)
    ties = has_payload(first) or has_payload(second)
    for inputs in special_inputs(types, seed, agreement.exact, near, ties):
        try:
            expected, found = _runs(first, second, inputs, may_fail=True)
        except Unfinished as error:
            unfinished = error
            continue
        except _FirstFails:
            continue
        if agreement.exact:
            check_bits(expected, found, inputs)
        elif agreement.is_measured:
            conditioned.append(_measured(first, second, inputs, found, agreement))
        else:
            _check_near(first, expected, found, inputs, seed)
    if unfinished is not None:
        raise unfinished
    if agreement.is_measured:
        # Where all results are ill-conditioned, the programs are not compared.
        assume(any(part > 0 for part in conditioned))


class _FirstFails(Exception):
    """The first program fails on an input, which is skipped."""


SLOWER: Final = 10
"""The second program may evaluate so many times the equations of the first."""


def _runs(
    first: Jaxpr, second: Jaxpr, inputs: Sequence[Value], may_fail: bool
) -> tuple[Outcome, Outcome]:
    """Run both programs. Raises AssertionError if only the second one does not end."""
    try:
        expected, steps = run_metered(first, inputs)
    except Exception as error:
        if may_fail and not isinstance(error, Unfinished):
            raise _FirstFails from error
        raise
    most = SLOWER * (steps + 1000)
    try:
        return expected, run_metered(second, inputs, most)[0]
    except Unfinished:
        outer = METER.get()
        if outer is not None and outer.is_spent:
            raise
        raise AssertionError(
            f"the program that the pass returns does not end: it evaluates more than {most} "
            f"equations, and the given one {steps}\n{_on(inputs)}"
        ) from None


def _measured(
    first: Jaxpr, second: Jaxpr, inputs: Sequence[Value], found: Outcome, agreement: Agreement
) -> float:
    tolerance = agreement.tolerance or Tolerances()
    return compare(first, second, inputs, tolerance, agreement.where_finite, found)


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
                    f"{what} {i} differs, bit by bit:\n{both(x, y)}\n{on_inputs(inputs, x, y)}"
                )


def _on(inputs: Sequence[Value]) -> str:
    return "on the inputs\n" + "\n".join(f"  {elided(np.asarray(x))}" for x in inputs)
