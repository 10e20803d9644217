"""Where things in a row stand, so that what is connected is above each other and nothing overlaps.

Rows are swept from the top and from the bottom. In each, everything wants to be where the mean of
its connections is; the order comes from these wishes, and the places from the least sum of squared
distances to them that leaves enough room (an isotonic regression, in linear time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

GAP: Final = 16.0
"""The room between neighbours."""

SWEEPS: Final = 6

STIFF: Final = 40.0
"""How much more than a box an array that passes wants to stay in line."""

HOME: Final = 0.9
"""What is left of a wish while the order is found: without it long programs drift to a side."""


class Item:
    """Something that has a place in a row: a box, or an array that passes through.

    Attributes:
        left, right: how far it reaches from ``x``.
        up, down: its connections, as (item, where on it, where on this one).
        fixed: whether it keeps its place in the order among those like it.
        last: whether it stands behind everything that is not.
        chain: all that an array passes through, which had better be in one line.
    """

    __slots__ = ("chain", "down", "fixed", "last", "left", "right", "up", "x")

    def __init__(self, left: float, right: float, fixed: bool = False, last: bool = False) -> None:
        self.x: float = 0.0
        self.left: float = left
        self.right: float = right
        self.fixed: bool = fixed
        self.last: bool = last
        self.chain: list[Item] = []
        self.up: list[tuple[Item, float, float]] = []
        self.down: list[tuple[Item, float, float]] = []

    @property
    def through(self) -> bool:
        """Whether this is an array that passes."""
        return self.left <= THROUGH

    def wish(self, ways: Sequence[tuple[Item, float, float]]) -> float:
        """Where the item stands right above or below the mean of these connections."""
        if not ways:
            return self.x
        return sum([item.x + there - here for item, there, here in ways]) / len(ways)


THROUGH: Final = 5.0
"""How far an array that passes reaches to each side."""


def connect(above: Item, there: float, below: Item, here: float) -> None:
    """Connect two items at offsets from their places."""
    above.down.append((below, here, there))
    below.up.append((above, there, here))


def spread(rows: list[list[Item]]) -> None:
    """Set the places of all items, and the order of each row. The leftmost reaches to 0."""
    for row in rows:
        _settle(row, [0.0] * len(row))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        last = sweep == SWEEPS - 1
        for row in rows if down else reversed(rows):
            _sweep(row, (lambda i: i.up) if down else (lambda i: i.down), sort=not last)
    for _ in range(SWEEPS):
        _align(rows)
        for row in rows:
            _sweep(row, lambda i: [*i.up, *i.down], sort=False)
    _align(rows)
    shift = min([item.x - item.left for row in rows for item in row], default=0.0)
    for row in rows:
        for item in row:
            item.x -= shift


def _align(rows: Sequence[list[Item]]) -> None:
    """Bring each chain into one line, as far as there is room."""
    middle: dict[int, float] = {}
    for row in rows:
        for item in row:
            if item.chain and id(item.chain) not in middle:
                middle[id(item.chain)] = sum([i.x for i in item.chain]) / len(item.chain)
    for row in rows:
        _settle(row, [middle[id(i.chain)] if i.chain else i.x for i in row], STIFF)


Ways = Callable[[Item], Sequence[tuple[Item, float, float]]]


def _sweep(row: list[Item], ways: Ways, sort: bool) -> None:
    wishes = {id(item): item.wish(ways(item)) for item in row}
    if sort:
        for key in wishes:
            wishes[key] *= HOME
        _keep_order(row, wishes)
        row.sort(key=lambda item: wishes[id(item)])
    _settle(row, [wishes[id(item)] for item in row])


def _keep_order(row: Sequence[Item], wishes: dict[int, float]) -> None:
    """Raise the wishes of items that must not pass the ones before."""
    least = -1e18
    for item in row:
        if item.fixed:
            least = wishes[id(item)] = max(least, wishes[id(item)])
    for item in row:
        if item.last:
            most = max(wishes[id(other)] for other in row if not other.through)
            wishes[id(item)] = most + 1e-6


def _settle(row: Sequence[Item], wishes: Sequence[float], stiff: float = 1.0) -> None:
    """Place the items in this order, as near to the wishes as there is room.

    ``stiff`` is how much more the wishes of chains count.
    """
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []
    for k, (item, wish) in enumerate(zip(row, wishes, strict=True)):
        if k:
            gap = GAP if not (item.through and row[k - 1].through) else 2.0
            offset += row[k - 1].right + gap + item.left
        offsets.append(offset)
        # Without the offsets, the places must not decrease: neighbours that would are merged.
        weight = stiff if item.chain else 1.0 + len(item.up) + len(item.down)
        mean, size = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, n = blocks.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, size = weight + heavy, size + n
        blocks.append((mean, weight, size))
    k = 0
    for mean, _, size in blocks:
        for _ in range(size):
            row[k].x = mean + offsets[k]
            k += 1
