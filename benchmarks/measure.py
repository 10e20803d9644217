"""Timing of pairs: both sides of a case in turns, in one process, by the process's CPU time."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Thunk = Callable[[], object]
Prepare = Callable[[int], Thunk]
"""From a number that differs each time to what is timed; what it does itself is not timed."""


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: what is printed, and what ``--only`` looks at.
        effax: this library's side.
        jax: JAX's side.
        budget: how many times faster this library must be; None where the issue sets nothing.
        units: equations (or calls) that one run of what is timed handles, as one number for both
            sides or one for each; time is divided by it.
        fresh: whether what is timed must be prepared anew for each run, since caches would answer
            the second one.
    """

    name: str
    effax: Prepare
    jax: Prepare
    budget: float | None = None
    units: int | Callable[[], tuple[int, int]] = 1
    fresh: bool = True


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        seconds: for one case, as far as the least number of repetitions allows.
        least: repetitions at least.
        most: repetitions at most.
        section: seconds that one timed section should last, by running what is timed many times.
    """

    seconds: float = 8.0
    least: int = 5
    most: int = 25
    section: float = 0.03


QUICK = Effort(seconds=1.5, least=3, most=7, section=0.01)


@dataclass
class Times:
    """Seconds of one run of what is timed, one entry a repetition."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        """The least CPU time."""
        return min(self.cpu)

    @property
    def median(self) -> float:
        """The median CPU time."""
        return statistics.median(self.cpu)


@dataclass(frozen=True)
class Measured:
    """A case with its times, for one unit, in seconds."""

    case: Case
    effax: Times
    jax: Times
    units: tuple[int, int]

    @property
    def repetitions(self) -> int:
        """How often each side was timed."""
        return len(self.effax.cpu)

    @property
    def ratio(self) -> float:
        """JAX's least time over this library's."""
        return (self.jax.least / self.units[1]) / (self.effax.least / self.units[0])

    @property
    def median_ratio(self) -> float:
        """JAX's median time over this library's."""
        return (self.jax.median / self.units[1]) / (self.effax.median / self.units[0])


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the cycle collector out of a block, as ``timeit`` does."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def measure(case: Case, effort: Effort) -> Measured:
    """Time both sides of a case in turns; which one begins changes with each repetition."""
    # What earlier cases left in caches is not looked at again in every collection.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    sides = (_Side(case.effax, case.fresh), _Side(case.jax, case.fresh))
    spent = sum(side.warm_up(effort.section) for side in sides)
    repetitions = max(effort.least, min(effort.most, int(effort.seconds / max(spent, 1e-9))))
    for repetition in range(repetitions):
        for side in sides if repetition % 2 else reversed(sides):
            side.repeat()
    units = case.units() if callable(case.units) else (case.units, case.units)
    return Measured(case, sides[0].times, sides[1].times, units)


class _Side:
    """One side of a case: how often it runs in a timed section, and its times so far."""

    def __init__(self, prepare: Prepare, fresh: bool) -> None:
        self.prepare = prepare
        self.kept = None if fresh else prepare(0)
        self.seeds = itertools.count(1)
        self.runs = 1
        self.times = Times()

    def warm_up(self, section: float) -> float:
        """Run, and find how often to run; gives the wall time of a repetition, all told."""
        self.section()
        start = time.perf_counter()
        cpu, _ = self.section()
        self.runs = max(1, min(_MOST_RUNS, int(section / max(cpu, 1e-9))))
        if self.runs > 1:
            start = time.perf_counter()
            self.section()
        return time.perf_counter() - start

    def repeat(self) -> None:
        """Time one section."""
        cpu, wall = self.section()
        self.times.cpu.append(cpu)
        self.times.wall.append(wall)

    def section(self) -> tuple[float, float]:
        """CPU and wall time of one run, in seconds."""
        kept = self.kept
        thunks = [
            self.prepare(next(self.seeds)) if kept is None else kept for _ in range(self.runs)
        ]
        with no_collection():
            wall, cpu = time.perf_counter(), time.process_time()
            for thunk in thunks:
                thunk()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return cpu / self.runs, wall / self.runs


_MOST_RUNS = 5000
