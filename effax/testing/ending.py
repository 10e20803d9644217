"""Bound the evaluations of laws, and record the inputs on which a program does not end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from effax.ir.errors import BadArgument, Unfinished
from effax.ir.eval.bounds import bounded_evaluation
from effax.ir.syntax import Jaxpr
from effax.testing.generate.values import RUNS, limited, random_inputs, run_metered
from effax.testing.laws.equivalence import SLOWER
from effax.testing.report.report import Inconclusive, LawBroken


def check_bounds(max_steps: int, max_seconds: float) -> None:
    """Raise BadArgument unless both bounds of evaluations are positive."""
    if max_steps < 1 or not max_seconds > 0:
        raise BadArgument(
            "the bounds of evaluations are not valid",
            expected="`max_steps` of at least 1 and `max_seconds` above 0",
            found=f"max_steps={max_steps}, max_seconds={max_seconds}",
        )


def bounds_text(max_steps: int, max_seconds: float) -> str:
    """Return the bounds as they print in reports."""
    return f"{max_steps} equations and {max_seconds:g} seconds (`max_steps=`, `max_seconds=`)"


class Ending:
    """The runs of programs that end within bounds.

    Compiled code cannot be stopped, so a program is evaluated before a law compiles it.

    Attributes:
        max_steps: the greatest number of equations of a run.
        max_seconds: the greatest time of all runs of a law.
        stopped: the programs that were stopped, in words.
    """

    def __init__(self, max_steps: int, max_seconds: float) -> None:
        self.max_steps = max_steps
        self.max_seconds = max_seconds
        self.stopped: dict[str, None] = {}
        self._steps: dict[tuple[Jaxpr, int], int] = {}
        self._endless: set[tuple[Jaxpr, int]] = set()

    @contextmanager
    def bounded(self, jaxpr: Jaxpr, seed: int, what: str = "") -> Iterator[None]:
        """Bound the evaluations of a law on a program and the random inputs of a seed.

        Raises:
            Unfinished: the program does not end on these inputs, or a run of the law does not.
        """
        key = jaxpr, seed
        try:
            most = self._most(key)
            with bounded_evaluation(most, self.max_seconds):
                yield
        except Unfinished:
            self._stop(key, what)
            raise
        except LawBroken as broken:
            if isinstance(broken.root, Unfinished):
                self._stop(key, what)
                raise broken.root from None
            raise

    def check_conclusive(self, name: str) -> None:
        """Raise Inconclusive if no run ended."""
        if self._endless and self._endless.issuperset(self._steps):
            raise Inconclusive(
                f"no evaluation of {name} ended within its bounds",
                expected="a primitive that ends on random values",
                found=f"no end within {bounds_text(self.max_steps, self.max_seconds)}",
                remedy="larger bounds, or `domain=` where it ends",
            )

    def _stop(self, key: tuple[Jaxpr, int], what: str) -> None:
        self._endless.add(key)
        if what:
            self.stopped[what] = None

    def _most(self, key: tuple[Jaxpr, int]) -> int:
        """Return the bound of the equations of a law. Raises Unfinished for an endless program.

        A law runs the program several times, and on similar inputs.
        """
        if key in self._endless:
            raise Unfinished("the program does not end on these inputs")
        if key not in self._steps:
            self._steps[key] = self._counted(*key)
        return min(RUNS * self.max_steps, RUNS * SLOWER * (self._steps[key] + 1000))

    def _counted(self, jaxpr: Jaxpr, seed: int) -> int:
        """Return the number of equations of a run; 0 if it fails, which laws report."""
        if jaxpr.free_axes:
            return 0
        try:
            with limited(self.max_steps, self.max_seconds):
                return run_metered(jaxpr, random_inputs(jaxpr.in_types, seed))[1]
        except Unfinished:
            raise
        except Exception:  # noqa: BLE001  # a user-defined evaluation may raise anything
            return 0
