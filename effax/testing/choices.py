"""Choices made by Hypothesis, in the few forms that growing a program needs.

Hypothesis shrinks a choice towards its first alternative, so the simplest one comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")


@lru_cache(maxsize=256)
def below_strategy(n: int) -> SearchStrategy[int]:
    """Numbers in ``range(n)``."""
    # Making a strategy costs more than drawing from it.
    return st.integers(0, n - 1)


class Choices:
    """Where a program that grows takes its choices from."""

    __slots__ = ("draw",)

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw

    def below(self, n: int) -> int:
        """A number in ``range(n)``."""
        return self.draw(below_strategy(n)) if n > 1 else 0

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
        if len(items) > 6:
            return [item for item in items if self.chance(percent)]
        # One draw for all: its bits say which.
        bits = self.below(1 << len(items))
        return [item for i, item in enumerate(items) if bits >> i & 1]
