"""Compare two programs with a tolerance, by their errors against double precision.

The results of a program have an error themselves, which may be large: x - y for nearly equal x and
y is ill-conditioned. So the second program is compared with the first in double precision, and its
error may be as large as that of the first program in its own dtypes, and as the changes of the
results if each number that the first program computes is changed by the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from effax.ir.dtypes import DType, as_dtype, is_inexact_dtype
from effax.ir.errors import BadArgument
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.testing.generate.values import (
    Differs,
    Outcome,
    both,
    elided,
    on_inputs,
    run,
    tolerance,
)
from effax.testing.laws.instrumented import (
    defined,
    evaluate_perturbed,
    evaluate_wide,
    is_unstable,
)

Allowed = float | Mapping[str, float]
"""A tolerance: of all dtypes, or by the names of dtypes."""

SAMPLES: Final = 4
"""The number of perturbed evaluations."""

FACTOR: Final = 4.0
CHAOTIC_FACTOR: Final = 40.0
"""The factor between the changes in these and the error that is allowed; that of elements that
change by more than a sixteenth, of which few samples show little."""


@dataclass(frozen=True)
class Tolerances:
    """The allowed error of results, relative and absolute, by dtype.

    Attributes:
        rtol: relative to the exact value, element by element; a number, or a mapping from names of
            dtypes to numbers. Dtypes without one have ``1e-7`` in double precision, ``2e-3`` in
            single, and eight roundings in narrower dtypes.
        atol: the absolute error, likewise; 0 by default.

    Raises:
        BadArgument: a number is negative or not finite, or a name is no inexact dtype.
    """

    rtol: Allowed | None = None
    atol: Allowed | None = None

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            _check_allowed(name, getattr(self, name))

    def relative(self, dtype: DType) -> float:
        """Return the relative tolerance of a dtype."""
        found = _of(self.rtol, dtype)
        return tolerance(dtype) if found is None else found

    def absolute(self, dtype: DType) -> float:
        """Return the absolute tolerance of a dtype."""
        return _of(self.atol, dtype) or 0.0


def _of(allowed: Allowed | None, dtype: DType) -> float | None:
    if isinstance(allowed, Mapping):
        return {as_dtype(name): x for name, x in allowed.items()}.get(dtype)
    return allowed


def _check_allowed(name: str, given: object) -> None:
    numbers = [*given.values()] if isinstance(given, Mapping) else [given]
    for x in numbers:
        if given is not None and not (
            isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < np.inf
        ):
            raise BadArgument(
                f"`{name}` is no tolerance",
                expected="a number of at least 0, or a mapping from names of dtypes to such",
                found=f"{given!r:.60}",
            )
    for dtype in given if isinstance(given, Mapping) else ():
        if not is_inexact_dtype(as_dtype(dtype)):
            raise BadArgument(
                f"`{name}` names a dtype without rounding",
                expected="floating and complex dtypes; others are compared exactly",
                found=str(dtype),
            )


@dataclass
class _Runs:
    """The runs of a program on one input, on demand.

    Attributes:
        own: in its own dtypes: results, then final contents.
    """

    jaxpr: Jaxpr
    inputs: Sequence[Value]
    allowed: Tolerances
    own: list[Value]

    @cached_property
    def exact(self) -> list[Value]:
        """Return the values in double precision."""
        return _values(evaluate_wide(self.jaxpr, self.inputs))

    @cached_property
    def near(self) -> list[list[Value]]:
        """Return the values of perturbed runs."""
        size = self.allowed.relative
        outcomes = [
            evaluate_perturbed(self.jaxpr, self.inputs, seed, size) for seed in range(SAMPLES)
        ]
        return [_values(one) for one in outcomes]

    @cached_property
    def is_unstable(self) -> bool:
        """Return whether numbers on which integers may depend are ill-conditioned."""
        return is_unstable(self.jaxpr, self.inputs, self.allowed.relative, SAMPLES)


def _values(outcome: Outcome) -> list[Value]:
    return [*outcome.outs, *outcome.contents]


def check_close(
    first: Jaxpr,
    second: Jaxpr,
    inputs: Sequence[Value],
    rtol: Allowed | None = None,
    atol: Allowed | None = None,
    where_finite: bool = False,
) -> None:
    """Raise AssertionError unless two programs agree on an input, up to a tolerance.

    The error of the second program is measured against the first one in double precision. It may
    be ``atol + rtol·|exact|``, twice the error of the first program in its own dtypes, and four
    times the change of the results if each number that the first program computes is changed by
    ``rtol`` (ten times as much where results change by more than a sixteenth): so an
    ill-conditioned program does not accuse the second one. Integers and booleans must be equal,
    unless such changes change them, or change a number by more than a quarter.

    Args:
        first: the expected program.
        second: the other one, of the same types.
        inputs: a value for each input, which is not changed.
        rtol: the relative tolerance, a number or one by dtype; None: that of ``Tolerances``.
        atol: the absolute tolerance, likewise.
        where_finite: whether results are compared only where that of the first program is finite
            and depends on no infinite, undefined or overflowing value. Otherwise nan and infinities
            have to be at the same places.

    Raises:
        AssertionError: they do not agree; the message has the values, the exact ones, the error and
            the allowed one.
        BadArgument: a tolerance is no number of at least 0.

    Example:
        >>> from effax.ir import parse
        >>> from effax.testing import check_close, random_inputs
        >>> f = parse("{ lambda ; a:f32[3]. let b:f32[3] = exp a in (b,) }")
        >>> check_close(f, f, random_inputs(f.in_types, 0), rtol=1e-3)
    """
    compare(first, second, inputs, Tolerances(rtol, atol), where_finite)


def compare(
    first: Jaxpr,
    second: Jaxpr,
    inputs: Sequence[Value],
    allowed: Tolerances,
    where_finite: bool,
    found: Outcome | None = None,
) -> float:
    """Check :func:`check_close`; return the part of the inexact elements that are well conditioned.

    An element is if the error that is allowed is below half of its size.

    Args:
        first: the expected program.
        second: the other one.
        inputs: the inputs.
        allowed: the tolerance.
        where_finite: whether only results that are finite and defined are compared.
        found: the outcome of the second program, if it is known.
    """
    runs = _Runs(first, inputs, allowed, _values(run(first, inputs)))
    outcome = run(second, inputs) if found is None else found
    n = len(first.outs)
    if len(outcome.outs) != n:
        raise Differs(f"expected {n} of result, found {len(outcome.outs)}")
    masks = None
    if where_finite:
        masks = [flag for part in defined(first, inputs) for flag in part]
    conditions: list[float] = []
    for i, y in enumerate(_values(outcome)):
        if masks is None or masks[i]:
            what = f"result {i}" if i < n else f"final content of reference {i - n}"
            conditions.append(_check_value(runs, i, what, y, where_finite))
    return float(np.mean(conditions)) if conditions else 0.0


def _check_value(runs: _Runs, i: int, what: str, y: Value, where_finite: bool) -> float:
    x = runs.own[i]
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        raise Differs(f"{what} has another type: expected {x.dtype}{list(x.shape)}")
    if not is_inexact_dtype(x.dtype):
        moves = np.array_equal(x, y) or any(_moves(x, near[i]) for near in runs.near)
        if not moves and not runs.is_unstable:
            raise AssertionError(_message(what, x, y, "") + "\n" + on_inputs(runs.inputs, x, y))
        return 1.0
    allowed = runs.allowed
    wide, exact = y.astype(runs.exact[i].dtype), runs.exact[i]
    own = x.astype(exact.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        limit = (
            allowed.absolute(x.dtype) + allowed.relative(x.dtype) * size + 2 * np.abs(own - exact)
        )
        error = np.abs(wide - exact)
        skipped = _incomparable(own, exact, where_finite)
        same = (own == wide) | (np.isnan(own) & np.isnan(wide))
        good = skipped | np.where(np.isfinite(exact) & np.isfinite(own), error <= limit, same)
        if not np.all(good):
            spread = _spread(exact, [near[i] for near in runs.near])
            limit = limit + np.where(spread < size / 16, FACTOR, CHAOTIC_FACTOR) * spread
            good = good | (error <= limit) | ~np.isfinite(spread)
    if not np.all(good):
        at = tuple(int(k) for k in np.argwhere(~np.asarray(good))[0])
        note = (
            f"\n  exact    {elided(np.asarray(exact))}\n"
            f"  the error{f' at {list(at)}' if at else ''} is {np.asarray(error)[at]:.3g}; "
            f"{np.asarray(limit)[at]:.3g} is allowed"
        )
        raise AssertionError(_message(what, x, y, note) + "\n" + on_inputs(runs.inputs, x, y))
    return _condition(limit, size, skipped)


def _condition(limit: Value, size: Value, skipped: Value) -> float:
    with np.errstate(all="ignore"):
        counted = ~skipped
        good = counted & ((limit <= size / 2) | (limit < 1e-6))
    return float(np.sum(good) / np.sum(counted)) if np.any(counted) else 1.0


def _incomparable(own: Value, exact: Value, where_finite: bool) -> Value:
    """Return the mask of elements that overflow in their own dtype, or are not finite."""
    overflows = np.isfinite(exact) & ~np.isfinite(own)
    return np.asarray(overflows | ~np.isfinite(own) if where_finite else overflows)


def _spread(exact: Value, near: Sequence[Value]) -> Value:
    """Return the greatest change of each element; inf where it becomes finite or ceases to be."""
    found = np.zeros(exact.shape)
    for x in near:
        change = np.abs(x - exact)
        same = (x == exact) | (np.isnan(x) & np.isnan(exact))
        found = np.maximum(
            found, np.where(same, 0.0, np.where(np.isfinite(change), change, np.inf))
        )
    return found


def _moves(x: Value, near: Value) -> bool:
    return not np.array_equal(x, near)


def _message(what: str, x: Value, y: Value, note: str) -> str:
    return f"{what} differs:\n{both(x, y)}{note}"
