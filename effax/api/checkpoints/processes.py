"""Agreement of the processes that save together."""

from __future__ import annotations

from itertools import count
from math import inf
from typing import Final, Protocol, final

from effax.lowering.xla import processes


class Savers(Protocol):
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


@final
class Members:
    """The processes of a group. Texts are exchanged apart from those of computations.

    A save may run in another thread while this one compiles and computes.
    """

    def __init__(self, group: processes.Group, number: int) -> None:
        self.rank: Final = group.options.rank
        self.count: Final = group.options.size
        self._group: Final = group
        self._key: Final = f"effax/checkpoint/{number}"
        self._calls: int = 0

    def gathered(self, text: str) -> list[str]:
        """Return the texts of all processes. Raises ProcessLost where one ended."""
        self._calls += 1
        # A large part takes its time: only the end of a process ends the wait.
        every = range(self.count)
        return self._group.gathered(self._key, self._calls, "saves its parts", text, every, inf)


_numbers: Final = count()


def savers() -> Savers:
    """Return the processes of the computation, for one save; all of them call this in one order."""
    group = processes.joined_group()
    return Alone() if group is None else Members(group, next(_numbers))
