"""Assign each box to a row.

A box is below its operands. Equations with effects or open subjaxprs keep program order: each is in
a row below the previous one. Others are in the highest possible row, so that independent equations
are side by side, up to a width. A box without operands is just above its first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.show.boxes import Box

WIDE: Final = 1000.0
"""The width at which a row is full."""


def rows(boxes: Sequence[Box], widths: Sequence[float]) -> list[list[int]]:
    """Return the boxes of each row, by position, in time linear in boxes and operands."""
    placer = _Rows(boxes, widths)
    for i in range(len(boxes)):
        placer.take(i)
    placer.finish()
    return placer.rows


class _Rows:
    """The rows so far; ``skip`` is a union-find from full rows to the next row with room."""

    def __init__(self, boxes: Sequence[Box], widths: Sequence[float]) -> None:
        self.boxes = boxes
        self.widths = widths
        self.rows: list[list[int]] = []
        self.used: list[float] = []
        self.skip: list[int] = []
        self.made: dict[int, int] = {}
        self.late: dict[int, int] = {}
        self.results: list[int] = []
        self.first = 0
        self.ordered = -1

    def take(self, i: int) -> None:
        """Place the box, or defer it until its first use."""
        box = self.boxes[i]
        if box.kind == "out":
            self.results.append(i)
        elif box.kind == "in":
            self.first = self.put(i, 0) + 1
        elif not box.ins and not box.taps and not box.frames:
            self.late.update((v.id, i) for v in box.outs)
            if not box.outs:
                self.put(i, self.first)
        else:
            self.equation(i)

    def equation(self, i: int) -> None:
        box = self.boxes[i]
        start = self.above(box)
        if box.taps or box.frames:
            self.ordered = self.put(i, max(start, self.ordered + 1))
        else:
            self.put(i, start)

    def above(self, box: Box) -> int:
        """Return the first possible row of the box, after its operands are placed."""
        start = max([self.first, *[self.made.get(v, -1) + 1 for v in box.ins]])
        for v in box.ins:
            if v in self.late:
                source = self.late[v]
                row = self.put(source, max(self.first, start - 1))
                start = max(start, row + 1)
        return start

    def put(self, i: int, row: int) -> int:
        """Place the box in the first row from ``row`` on that has room."""
        while len(self.rows) <= row:
            self.add()
        row = self.open_row(row)
        self.rows[row].append(i)
        self.used[row] += self.widths[i]
        if self.used[row] >= WIDE:
            self.skip[row] = row + 1
        for v in self.boxes[i].outs:
            self.made[v.id] = row
            self.late.pop(v.id, None)
        return row

    def add(self) -> None:
        self.skip.append(len(self.rows))
        self.rows.append([])
        self.used.append(0.0)

    def open_row(self, row: int) -> int:
        """Return the next row with room, and compress the path to it."""
        chain = []
        while self.skip[row] != row:
            chain.append(row)
            row = self.skip[row]
            if row == len(self.rows):
                self.add()
        for passed in chain:
            self.skip[passed] = row
        return row

    def finish(self) -> None:
        """Place unused boxes, then the results in the last row."""
        for i in dict.fromkeys(self.late.values()):
            self.put(i, self.first)
        self.late.clear()
        last = len(self.rows)
        for i in self.results:
            self.put(i, last)
