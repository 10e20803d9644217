"""Text of messages that is made only when a message is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class LateText:
    """A text that costs time to make, such as a leaf's path among all of a tree's."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    def __str__(self) -> str:
        return self._make()
