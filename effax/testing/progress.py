"""Report the progress of long checks on the standard error stream."""

from __future__ import annotations

import sys
from textwrap import shorten
from time import monotonic
from typing import Final

SECONDS: Final = 10.0
"""The time between two lines; a check that is faster prints none."""


class Progress:
    """The progress of a check.

    Attributes:
        name: the name of the check.
        expected: the approximate number of tries.
        silent: whether nothing is printed.
        done: the number of tries so far.
    """

    def __init__(self, name: str, expected: int, silent: bool = False) -> None:
        self.name: str = shorten(name, 60, placeholder=" ...")
        self.expected = expected
        self.silent = silent
        self.done: int = 0
        self._begun = self._last = monotonic()

    def step(self, note: str = "") -> None:
        """Count a try; print a line if the last one is long ago."""
        self.done += 1
        now = monotonic()
        if not self.silent and now - self._last >= SECONDS:
            self._last = now
            of = f" of about {self.expected}" if self.done <= self.expected else ""
            seconds = f"{now - self._begun:.0f} s"
            sys.stderr.write(f"{self.name}: {self.done} tries{of}, {seconds}{note}\n")
            sys.stderr.flush()
