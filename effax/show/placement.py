"""Place the items of each row close to their connections, without overlap.

Rows are swept from the top and from the bottom. The target of an item is the mean of its
connections; targets determine the order, and places minimize the sum of squared distances to the
targets under the constraint of no overlap (an isotonic regression, in linear time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

GAP: Final = 16.0
"""The distance between neighbours."""

SWEEPS: Final = 6

STIFF: Final = 40.0
"""The weight of a wire's alignment, relative to a box."""

HOME: Final = 0.9
"""The factor of targets while the order is found: without it long programs drift to a side."""


class Item:
    """An item of a row: a box, or a wire that passes through.

    Attributes:
        left, right: its extent from ``x``.
        up, down: its connections, as (item, offset on it, offset on this one).
        fixed: whether it keeps the order among fixed items.
        last: whether it is to the right of all items that are not.
        chain: the items of its wire in other rows, to be aligned.
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
        """True if this is a wire."""
        return self.left <= THROUGH

    def target(self, ways: Sequence[tuple[Item, float, float]]) -> float:
        """Return the target: the mean of these connections."""
        if not ways:
            return self.x
        return sum([item.x + there - here for item, there, here in ways]) / len(ways)


THROUGH: Final = 5.0
"""The extent of a wire to each side."""


def connect(above: Item, there: float, below: Item, here: float) -> None:
    """Connect two items at offsets from their places."""
    above.down.append((below, here, there))
    below.up.append((above, there, here))


def spread(rows: list[list[Item]]) -> None:
    """Set the places of all items, and the order of each row. The left edge is 0."""
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
    """Align each chain, as far as possible."""
    middle: dict[int, float] = {}
    for row in rows:
        for item in row:
            if item.chain and id(item.chain) not in middle:
                middle[id(item.chain)] = sum([i.x for i in item.chain]) / len(item.chain)
    for row in rows:
        _settle(row, [middle[id(i.chain)] if i.chain else i.x for i in row], STIFF)


Ways = Callable[[Item], Sequence[tuple[Item, float, float]]]


def _sweep(row: list[Item], ways: Ways, sort: bool) -> None:
    targets = {id(item): item.target(ways(item)) for item in row}
    if sort:
        for key in targets:
            targets[key] *= HOME
        _keep_order(row, targets)
        row.sort(key=lambda item: targets[id(item)])
    _settle(row, [targets[id(item)] for item in row])


def _keep_order(row: Sequence[Item], targets: dict[int, float]) -> None:
    """Raise the targets of items that must not pass earlier ones."""
    least = -1e18
    for item in row:
        if item.fixed:
            least = targets[id(item)] = max(least, targets[id(item)])
    for item in row:
        if item.last:
            most = max(targets[id(other)] for other in row if not other.through)
            targets[id(item)] = most + 1e-6


def _settle(row: Sequence[Item], targets: Sequence[float], stiff: float = 1.0) -> None:
    """Place the items in this order, as near to the targets as possible.

    ``stiff`` is the weight of the targets of chains.
    """
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []
    for k, (item, target) in enumerate(zip(row, targets, strict=True)):
        if k:
            gap = GAP if not (item.through and row[k - 1].through) else 2.0
            offset += row[k - 1].right + gap + item.left
        offsets.append(offset)
        # Pool adjacent violators: without offsets, places must not decrease.
        weight = stiff if item.chain else 1.0 + len(item.up) + len(item.down)
        mean, size = target - offset, 1
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
