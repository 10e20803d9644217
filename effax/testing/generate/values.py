"""Random inputs of programs, runs, and comparisons of their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

import ml_dtypes
import numpy as np

from effax.ir.dtypes import DType, family, is_inexact_dtype
from effax.ir.eval.bounds import METER, Meter, bounded_evaluation
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type


class Outcome(NamedTuple):
    """The observable outcome of a run.

    Attributes:
        outs: one array a result.
        contents: the final contents of each reference input, in order.
    """

    outs: list[Value]
    contents: list[Value]


class Differs(AssertionError):
    """Two values that should be equal are not."""


def random_value(rng: np.random.Generator, type_: Type) -> Value:
    """Return a value of moderate size. Floats have enough digits that no two are equal."""
    shape, dtype = type_.shape, type_.dtype
    match family(dtype):
        case "bool":
            return rng.integers(0, 2, shape).astype(bool) | np.zeros(shape, bool)
        case "int":
            return np.asarray(rng.integers(-2, 5, shape), dtype)
        case "uint":
            return np.asarray(rng.integers(0, 5, shape), dtype)
        case "complex":
            parts = rng.uniform(-2, 2, (2, *shape)).round(8)
            return np.asarray(parts[0] + 1j * parts[1], dtype)
        case "float":
            return np.asarray(rng.uniform(-2, 2, shape).round(8), dtype)
        case "key":
            words = rng.integers(0, 2**32, (*shape, dtype.itemsize // 4), np.uint32)
            return np.ndarray(shape, dtype, words)
        case _:
            return np.zeros(shape, dtype)


def random_inputs(types: Sequence[Type], seed: int) -> list[Value]:
    """Return one value an input; for a reference, a new buffer."""
    rng = np.random.default_rng(seed)
    return [np.array(random_value(rng, type_)) for type_ in types]


def run(jaxpr: Jaxpr, inputs: Sequence[Value]) -> Outcome:
    """Run a program on copies of the inputs."""
    buffers = [np.array(x) for x in inputs]
    outs = [np.array(x) for x in evaluate(jaxpr, buffers)]
    return Outcome(outs, contents_of(jaxpr.in_types, buffers))


MAX_STEPS: Final = 300_000
MAX_SECONDS: Final = 20.0
"""Bounds of the equations of one run of a program, and of the time of all runs of a law."""

RUNS: Final = 20
"""A law may evaluate so many times the equations of one run."""


def limited(max_steps: int, max_seconds: float) -> AbstractContextManager[Meter]:
    """Bound the runs of programs in a block: the equations of each, and the time of all."""
    return bounded_evaluation(RUNS * max_steps, max_seconds)


@contextmanager
def single_run() -> Iterator[Meter]:
    """Bound one evaluation, which does not count for the bounds of the context."""
    outer = METER.get()
    meter = Meter(*((MAX_STEPS, MAX_SECONDS) if outer is None else _share(outer)))
    token = METER.set(meter)
    try:
        yield meter
    finally:
        METER.reset(token)


def _share(outer: Meter) -> tuple[int, float]:
    return outer.most // RUNS, outer.seconds


def run_metered(
    jaxpr: Jaxpr, inputs: Sequence[Value], most: int | None = None
) -> tuple[Outcome, int]:
    """Run a program; return its outcome and the number of equations that it evaluates.

    Args:
        jaxpr: the program.
        inputs: its inputs, which are copied.
        most: a bound of the equations, besides that of the context.

    Raises:
        Unfinished: it evaluates more equations than a bound, or takes longer.
    """
    outer = METER.get()
    share, seconds = (MAX_STEPS, MAX_SECONDS) if outer is None else _share(outer)
    with bounded_evaluation(share if most is None else min(most, share), seconds) as meter:
        return run(jaxpr, inputs), meter.steps


def contents_of(types: Sequence[Type], values: Sequence[Value]) -> list[Value]:
    """Return the values of references."""
    return [x for x, t in zip(values, types, strict=True) if isinstance(t, RefType)]


def element(x: Value, index: int, axis: int = 0) -> Value:
    """Return a view of one element along an axis: an array, also where it is a scalar."""
    moved = np.moveaxis(x, axis, 0)
    return moved[index : index + 1].reshape(moved.shape[1:])


def with_zeros(
    types: Iterable[Type], present: Iterable[bool], values: Iterable[Value]
) -> list[Value]:
    """Return the values, with zeros for the types of which none is present."""
    rest = iter(values)
    return [
        np.array(next(rest)) if has else np.zeros(t.shape, t.dtype)
        for t, has in zip(types, present, strict=True)
    ]


def is_chaotic(jaxpr: Jaxpr, seed: int) -> bool:
    """Return whether changes of the last digits of inputs change the results altogether.

    Return False for an open program, which cannot be run alone.
    """
    if jaxpr.free_axes:
        return False
    return is_chaotic_on(jaxpr, random_inputs(jaxpr.in_types, seed), np.random.default_rng(seed))


def is_chaotic_on(jaxpr: Jaxpr, inputs: Sequence[Value], rng: np.random.Generator) -> bool:
    """Return whether small changes of these inputs change the results altogether."""
    expected = run(jaxpr, inputs)
    for _ in range(4):
        near = [_nudged(rng, x) if is_inexact_dtype(x.dtype) else x for x in inputs]
        try:
            check_outcomes(expected, run(jaxpr, near))
        except Differs:
            return True
    return False


def _nudged(rng: np.random.Generator, x: Value) -> Value:
    """Return the numbers, changed in their last digits; equal ones in the same way."""
    last = max(1e-13, rounding(x.dtype) / 2)
    shape = () if x.size > 1 and np.all(x == x.flat[0]) else x.shape
    with np.errstate(all="ignore"):
        return np.asarray(
            x * np.asarray(1 + last * rng.standard_normal(shape)).astype(x.dtype), x.dtype
        )


def check_equal(what: str, expected: Value, found: Value, scale: float = 0.0) -> None:
    """Raise Differs unless the values have one type and are equal up to rounding.

    Args:
        what: a name for the message.
        expected: the expected value.
        found: the value.
        scale: a magnitude to which rounding is relative, if it is above that of ``expected``.
    """
    expected, found = np.asarray(expected), np.asarray(found)
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        raise Differs(f"{what} has another type: expected {_type(expected)}, found {_type(found)}")
    if expected.dtype.names is not None:
        same = expected.tobytes() == found.tobytes()
    elif not is_inexact_dtype(expected.dtype):
        same = bool(np.array_equal(expected, found))
    else:
        same = _close(expected, found, scale)
    if not same:
        raise Differs(f"{what} differs:\n{both(expected, found)}")


def check_outcomes(expected: Outcome, found: Outcome) -> None:
    """Raise Differs unless the outcomes are equal up to rounding."""
    check_all("result", expected.outs, found.outs)
    check_all("final content of reference", expected.contents, found.contents)


def check_all(what: str, expected: Sequence[Value], found: Sequence[Value]) -> None:
    """Raise Differs unless the values are equal in pairs, up to rounding."""
    if len(expected) != len(found):
        raise Differs(f"expected {len(expected)} of {what}, found {len(found)}")
    for i, (x, y) in enumerate(zip(expected, found, strict=True)):
        check_equal(f"{what} {i}", x, y)


def tolerance(dtype: DType) -> float:
    """Return the relative tolerance of the results of a program.

    ``1e-7`` in double precision, ``2e-3`` in single, and eight roundings in narrower dtypes.
    """
    if dtype.name in ("float64", "complex128"):
        return 1e-7
    return max(2e-3, 8 * rounding(dtype)) if is_inexact_dtype(dtype) else 0.0


def rounding(dtype: DType) -> float:
    """Return the distance from 1 to the next number of an inexact dtype."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]  # it has no types


def greatest(dtype: DType) -> float:
    """Return the greatest number of an inexact dtype."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]  # it has no types


def largest(x: Value) -> float:
    """Return the magnitude of the greatest finite element; 0 if there is none."""
    with np.errstate(all="ignore"):
        size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
        return float(size[np.isfinite(size)].max(initial=0.0))


def _close(expected: Value, found: Value, scale: float) -> bool:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = expected.astype(wide), found.astype(wide)
        finite = np.isfinite(x) & np.isfinite(y)
        limit = tolerance(expected.dtype) * max(1.0, largest(x[finite]), scale)
        near = np.abs(x - y) <= limit
        same = (x == y) | (np.isnan(x) & np.isnan(y))
    return bool(np.all(np.where(finite, near, same)))


def _type(x: Value) -> str:
    return f"{x.dtype}{list(x.shape)}"


def shown(x: Value) -> str:
    """Return an expression that evaluates to the value."""
    with np.printoptions(precision=17, floatmode="unique", threshold=10_000):
        text = np.array2string(x, separator=", ").replace("\n", " ")
    return (
        f"np.array({text}, {x.dtype.name!r})"
        if x.size
        else f"np.zeros({x.shape}, {x.dtype.name!r})"
    )


MOST_SHOWN: Final = 40
"""The number of elements of an array that messages show whole."""


def elided(x: Value) -> str:
    """Return an expression for the value; that of a large array lacks most elements."""
    if x.size <= MOST_SHOWN:
        return shown(x)
    with np.printoptions(precision=17, floatmode="unique", threshold=MOST_SHOWN):
        text = " ".join(np.array2string(x, separator=", ").split())
    return f"np.array({text}, {x.dtype.name!r}) of shape {x.shape}"


def place_of_difference(expected: Value, found: Value) -> tuple[int, ...] | None:
    """Return where large arrays differ most; None: they are small, or of other types."""
    same = (expected.shape, expected.dtype) == (found.shape, found.dtype)
    if not same or expected.size <= MOST_SHOWN:
        return None
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = expected.astype(wide), found.astype(wide)
        change = np.where(np.isnan(x) & np.isnan(y), 0.0, np.abs(x - y))
        change = np.where(x == y, 1e-300 * (np.signbit(x.real) != np.signbit(y.real)), change)
        change = np.where(np.isnan(change), np.inf, change)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(change)), change.shape))


def both(expected: Value, found: Value) -> str:
    """Return the lines that show two values; of large arrays, the elements that differ most."""
    expected, found = np.asarray(expected), np.asarray(found)
    at = place_of_difference(expected, found)
    if at is None:
        return f"  expected {elided(expected)}\n  found    {elided(found)}"
    where = f" at {list(at)} of {_type(expected)}"
    x, y = (shown(np.asarray(v[at], v.dtype)) for v in (expected, found))
    return f"  expected {x}{where}\n  found    {y}"


def on_inputs(inputs: Sequence[Value], expected: Value, found: Value) -> str:
    """Return the lines that show inputs, large ones where the values differ most."""
    at = place_of_difference(np.asarray(expected), np.asarray(found))
    lines = ["on the inputs"]
    for x in map(np.asarray, inputs):
        if at is not None and x.shape == np.shape(expected):
            lines.append(f"  {shown(np.asarray(x[at], x.dtype))} at {list(at)} of {_type(x)}")
        else:
            lines.append(f"  {elided(x)}")
    return "\n".join(lines)


def scaled_outcome(x: Outcome, y: Outcome, mask: Sequence[bool]) -> Outcome:
    """Return -2·x + y/2, of results and of the contents in the mask; other contents of x."""

    def mixed(a: Value, b: Value) -> Value:
        return np.asarray(-2.0 * a + 0.5 * b, a.dtype)

    outs = [mixed(a, b) for a, b in zip(x.outs, y.outs, strict=True)]
    contents = [
        mixed(a, b) if has else a for a, b, has in zip(x.contents, y.contents, mask, strict=True)
    ]
    return Outcome(outs, contents)
