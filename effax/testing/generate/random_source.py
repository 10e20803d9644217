"""Random choices, in the few forms that growing a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class RandomSource:
    """Where a program that grows takes its choices from.

    The random generator may be one of Hypothesis's, which shrinks a choice towards its first
    alternative: so the simplest one comes first.
    """

    __slots__ = ("_random",)

    def __init__(self, random: Random) -> None:
        self._random = random

    def below(self, n: int) -> int:
        """A number in ``range(n)``."""
        return self._random.randrange(n) if n > 1 else 0

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """True that often; shrinks to False."""
        return self.below(100) >= 100 - percent

    def subset(self, items: Sequence[T], percent: int = 50) -> list[T]:
        """Some of the items, in their order; shrinks to none."""
        return [item for item in items if self.chance(percent)]
