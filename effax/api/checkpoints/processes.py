"""Agreement of the processes that save together."""

from __future__ import annotations

from typing import Protocol


class Group(Protocol):
    """The processes that save a tree.

    Attributes:
        rank: the number of this process.
        count: the number of processes.
    """

    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    def gathered(self, text: str) -> list[str]:
        """Return the texts of all processes, in their order, once each has called this."""
        ...


class Alone:
    """One process."""

    rank = 0
    count = 1

    def gathered(self, text: str) -> list[str]:
        """Return the text alone."""
        return [text]


def group() -> Group:
    """Return the processes of the computation, for one save; all of them call this in one order."""
    return Alone()
