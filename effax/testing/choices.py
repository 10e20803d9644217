"""Choices made by Hypothesis, in the few forms that growing a program needs.

Hypothesis shrinks a choice towards its first alternative, so the simplest one comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")

_RANDOMS: Final = st.randoms(use_true_random=False)


class Choices:
    """Where a program that grows takes its choices from.

    They come from a random generator that is made of Hypothesis's own choices, and not from
    strategies: Hypothesis would copy what strategies drew from one place of a program to others,
    and most programs that it tries would be variants of few.
    """

    __slots__ = ("_random",)

    def __init__(self, draw: DrawFn) -> None:
        self._random = draw(_RANDOMS)

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
