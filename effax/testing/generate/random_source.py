"""Random choices, in the forms that random programs need."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class RandomSource:
    """A source of choices.

    The generator may be one of Hypothesis, which shrinks a choice towards its first alternative:
    the simplest comes first.
    """

    __slots__ = ("_random",)

    def __init__(self, random: Random) -> None:
        self._random = random

    def below(self, n: int) -> int:
        """Return a number in ``range(n)``."""
        return self._random.randrange(n) if n > 1 else 0

    def between(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """Return True with a probability in percent; shrinks to False."""
        return self.below(100) >= 100 - percent

    def subset(self, items: Sequence[T], percent: int = 50) -> list[T]:
        """Return some of the items, in their order; shrinks to none."""
        return [item for item in items if self.chance(percent)]
