"""Time both sides of a case alternately in one process, by the CPU time of the process."""

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
"""From a seed, different for each run, to the thunk that is timed; the preparation is not."""


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: the label, which ``--only`` matches.
        effax: this library's side.
        jax: JAX's side.
        budget: the least ratio of JAX's time to this library's, or None.
        units: the number of equations (or calls) of one run, for both sides or for each; times are
            divided by it.
        fresh: whether each run needs a new thunk, because the result of the first is cached.
        wall: whether wall time is compared: programs on several devices run in threads.
        clock: the seconds spent so far; by default the CPU time of this process.
    """

    name: str
    effax: Prepare
    jax: Prepare
    budget: float | None = None
    units: int | Callable[[], tuple[int, int]] = 1
    fresh: bool = True
    wall: bool = False
    clock: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class Effort:
    """The duration of measurements.

    Attributes:
        seconds: the duration of a case, subject to ``least``.
        least: the least number of repetitions.
        most: the greatest number of repetitions.
        section: the least duration of a timed section, in seconds; short thunks run many times.
    """

    seconds: float = 8.0
    least: int = 5
    most: int = 25
    section: float = 0.03


QUICK = Effort(seconds=1.5, least=3, most=7, section=0.01)


@dataclass
class Times:
    """Times of a run in seconds, one entry for each repetition."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """A case with its times and its units."""

    case: Case
    effax: Times
    jax: Times
    units: tuple[int, int]

    @property
    def repetitions(self) -> int:
        """Return the number of repetitions."""
        return len(self.effax.cpu)

    @property
    def times(self) -> tuple[list[float], list[float]]:
        """Return the times of both sides that are compared."""
        if self.case.wall:
            return self.effax.wall, self.jax.wall
        return self.effax.cpu, self.jax.cpu

    @property
    def least(self) -> tuple[float, float]:
        """Return the least time of a unit of both sides."""
        ours, theirs = self.times
        return min(ours) / self.units[0], min(theirs) / self.units[1]

    @property
    def ratio(self) -> float:
        """Return the ratio of JAX's least time to this library's."""
        return self.least[1] / self.least[0]

    @property
    def median_ratio(self) -> float:
        """Return the ratio of JAX's median time to this library's."""
        ours, theirs = map(statistics.median, self.times)
        return (theirs / self.units[1]) / (ours / self.units[0])


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector in a block, as ``timeit`` does."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def measure(case: Case, effort: Effort) -> Measured:
    """Time both sides of a case alternately; the order changes with each repetition."""
    # Exempt objects in the caches of earlier cases from collections.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    sides = [_Side(prepare, case) for prepare in (case.effax, case.jax)]
    spent = sum(side.warm_up(effort.section) for side in sides)
    repetitions = max(effort.least, min(effort.most, int(effort.seconds / max(spent, 1e-9))))
    for repetition in range(repetitions):
        for side in sides if repetition % 2 else reversed(sides):
            side.repeat()
    units = case.units() if callable(case.units) else (case.units, case.units)
    return Measured(case, sides[0].times, sides[1].times, units)


class _Side:
    """One side of a case: the number of runs in a timed section, and its times."""

    def __init__(self, prepare: Prepare, case: Case) -> None:
        self.prepare = prepare
        self.clock = case.clock
        self.kept = prepare(0) if not case.fresh else None
        self.seeds = itertools.count(1)
        self.runs = 1
        self.times = Times()

    def warm_up(self, section: float) -> float:
        """Set the number of runs in a section, and return the wall time of a repetition."""
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
        """Return CPU and wall time of one run, in seconds."""
        kept = self.kept
        thunks = [
            self.prepare(next(self.seeds)) if kept is None else kept for _ in range(self.runs)
        ]
        with no_collection():
            wall, cpu = time.perf_counter(), self.clock()
            for thunk in thunks:
                thunk()
            cpu, wall = self.clock() - cpu, time.perf_counter() - wall
        return cpu / self.runs, wall / self.runs


_MOST_RUNS = 5000
