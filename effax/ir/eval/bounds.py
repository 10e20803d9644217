"""Bounds on evaluations: on the number of equations, and on the time.

A loop whose condition never fails would otherwise run without end::

    with bounded_evaluation(1000, 1.0) as meter:
        evaluate(jaxpr, args)  # raises Unfinished after 1000 equations, or after a second
    print(meter.steps)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Final

from effax.ir.errors import Unfinished
from effax.ir.primitive import Value
from effax.lazy.dataclasses import dataclass


@dataclass
class Meter:
    """The equations of subjaxprs that were evaluated, and the bounds.

    Attributes:
        most: the bound of ``steps``.
        seconds: the bound of the time.
        outer: the meter of the context around it, which counts the same equations.
        steps: the number of equations so far.
    """

    most: int
    seconds: float
    outer: Meter | None = None
    steps: int = 0

    def __post_init__(self) -> None:
        self.ends: float = monotonic() + self.seconds

    def count(self, n: int) -> None:
        """Count evaluated equations. Raises Unfinished beyond a bound."""
        self.steps += n
        if self.steps > self.most:
            raise self._unfinished(f"{self.most} equations")
        if monotonic() > self.ends:
            raise self._unfinished(f"{self.seconds:g} seconds, and {self.steps} equations")
        if self.outer is not None:
            self.outer.count(n)

    @property
    def is_spent(self) -> bool:
        """Return whether a bound is exceeded."""
        return self.steps > self.most or monotonic() > self.ends

    def _unfinished(self, found: str) -> Unfinished:
        return Unfinished(
            "an evaluation did not end within its bounds",
            expected="a program that ends: a `while` whose condition becomes false",
            found=f"no end after {found}",
        )


METER: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)
"""The meter of the evaluations in a context."""


@contextmanager
def bounded_evaluation(steps: int, seconds: float) -> Iterator[Meter]:
    """Bound all evaluations in the block together: the equations of subjaxprs, and the time.

    The time is looked at between runs of subjaxprs.
    """
    meter = Meter(steps, seconds, METER.get())
    token = METER.set(meter)
    try:
        yield meter
    finally:
        METER.reset(token)


def metered(run: Callable[..., list[Value]], size: int) -> Callable[..., list[Value]]:
    """Return the function, which counts ``size`` equations with each call."""
    meter = METER.get()
    if meter is None:
        return run
    count, size = meter.count, max(1, size)

    def counted(*args: Value) -> list[Value]:
        count(size)
        return run(*args)

    return counted
