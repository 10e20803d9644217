"""Compute the coordinates of boxes, wires and rails, in time linear in the program.

An array that is used a few rows below its equation is drawn as a wire; one that is used further
down is named at its use instead, as nets in a circuit diagram. The number of lines is therefore
linear in the program, for any lifetimes.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.text.names import VAR_NAMES
from effax.show.boxes import Box, Frame, Program
from effax.show.layers import rows
from effax.show.listing import place_list, rail_columns
from effax.show.marks import CHAR, SMALL
from effax.show.placed import (
    CROWD,
    DETAIL,
    GAP,
    HEAD,
    LABEL,
    LINE,
    NAME,
    NEAR,
    PAD,
    PORT,
    RAIL,
    Placed,
    PlacedBox,
    PlacedFrame,
    PlacedRail,
    Port,
    Size,
    Wire,
)
from effax.show.placement import THROUGH, Item, connect, spread
from effax.show.rails import Key, bound


def place(program: Program) -> Placed:
    """Return the coordinates of a program and its subjaxprs."""
    if program.listed:
        return place_list(program, [measure(box) for box in program.boxes])
    return _Layout(program).run()


def measure(box: Box) -> Size:
    """Return the size of a box, its ports relative to its middle."""
    frames, inner_width, inner_height = _frames(box.frames)
    toggle = 16.0 if box.frames else 0.0
    detail = len(box.detail) * SMALL
    if box.frames or box.kind == "run":
        head = len(box.text) * CHAR + (detail + 10 if box.detail else 0) + toggle + 20
        height = LINE + inner_height
    else:
        head = max(len(box.text) * CHAR + 16, detail + 16 if box.detail else 0)
        height = LINE + (DETAIL if box.detail else 0)
    labels = [len(bound(v)) * SMALL + 14 for v in box.outs] if box.kind != "run" else []
    ports = 0 if box.kind == "run" else PORT * (len(box.ins) + 1)
    width = max(head, inner_width, ports, 34.0)
    if len(labels) > 1:
        width = max(width, sum(labels))
    outs = _out_ports(labels, width)
    right = max([width / 2, *[x + n for x, n in zip(outs, labels, strict=True)]])
    return Size(width, height, right, outs, frames, head)


def _out_ports(labels: Sequence[float], width: float) -> tuple[float, ...]:
    if len(labels) == 1:
        return (0.0,)
    ports, x = [], -sum(labels) / 2
    for n in labels:
        ports.append(x + 6)
        x += n
    return tuple(ports)


def _frames(frames: Sequence[Frame]) -> tuple[tuple[PlacedFrame, ...], float, float]:
    """Return the subjaxprs of a box side by side, and their total width and height."""
    x, height = PAD, 0.0
    made: list[PlacedFrame] = []
    for frame in frames:
        placed = place(frame.program)
        y = LINE + 8 + (LABEL if frame.caption else 0)
        made.append(PlacedFrame(frame.caption, x, y, placed))
        x += max(placed.width, len(frame.caption) * SMALL) + 2 * PAD
        height = max(height, y - LINE + placed.height + PAD)
    return tuple(made), x - PAD if made else 0.0, height


class _Layout:
    """One run over one program; frames are already laid out when their box is measured."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.boxes = program.boxes
        self.sizes = [measure(box) for box in self.boxes]
        self.rows = rows(self.boxes, [s.width / 2 + s.right + GAP for s in self.sizes])
        self.row_of = {i: k for k, row in enumerate(self.rows) for i in row}
        self.items: list[list[Item]] = []
        self.of_box: dict[int, Item] = {}
        self.ports: dict[int, tuple[int, int]] = {}
        self.links: dict[int, list[tuple[Item, float, Item, float, int]]] = {}
        self.passing: dict[int, list[tuple[int, Item]]] = {}
        self.chains: dict[int, list[Item]] = {}
        self.far: set[tuple[int, int]] = set()
        self.tops: list[float] = []
        self.bottoms: list[float] = []

    def run(self) -> Placed:
        self.make_items()
        for i, box in enumerate(self.boxes):
            self.connect_outs(i, box)
        spread(self.items)
        bottom = self.set_heights()
        width = max([item.x + item.right for row in self.items for item in row], default=0.0)
        places = self.rail_places(width)
        boxes = tuple([self.placed(i, places) for i in self.row_of])
        wires = tuple([self.wire(v) for v in self.ports])
        rails = self.placed_rails(places, bottom)
        names = [r.x + NAME + len(r.rail.label) * SMALL for r in rails if r.rail.given]
        edges = [r.x + RAIL / 2 for r in rails]
        return Placed(max([width, *edges, *names]), bottom, boxes, wires, rails)

    def make_items(self) -> None:
        for row in self.rows:
            made = []
            for i in row:
                box, size = self.boxes[i], self.sizes[i]
                item = Item(
                    size.width / 2,
                    size.right,
                    box.kind != "eqn",
                    box.kind == "eqn" and bool(box.taps),
                )
                self.of_box[i] = item
                made.append(item)
                for k, v in enumerate(box.outs):
                    self.ports[v.id] = (i, k)
            self.items.append(made)

    def connect_outs(self, i: int, box: Box) -> None:
        """Connect the box to its operands, by wires or by names."""
        n = len(box.ins)
        for k, v in enumerate(box.ins):
            source, port = self.ports.get(v, (i, 0))
            here = (k - (n - 1) / 2) * PORT
            first, last = self.row_of[source], self.row_of[i]
            between = range(first + 1 + len(self.passing.get(v, ())), last)
            crowded = any(len(self.items[r]) - len(self.rows[r]) >= CROWD for r in between)
            if source == i or last - first > NEAR or crowded:
                self.far.add((i, k))
                continue
            self.route(v, (source, port), first, last, (self.of_box[i], here))

    def route(
        self, v: int, start: tuple[int, int], first: int, last: int, end: tuple[Item, float]
    ) -> None:
        """Route a wire down to a box, along existing wires of the same array."""
        links = self.links.setdefault(v, [])
        passing = self.passing.setdefault(v, [])
        for row in range(first + len(passing) + 1, last):
            item = Item(THROUGH, THROUGH)
            item.chain = self.chains.setdefault(v, [])
            item.chain.append(item)
            self.items[row].append(item)
            self.link(links, v, start, passing, (item, 0.0, row))
            passing.append((row, item))
        self.link(links, v, start, passing[: last - first - 1], (end[0], end[1], last))

    def link(
        self,
        links: list[tuple[Item, float, Item, float, int]],
        v: int,
        start: tuple[int, int],
        passing: Sequence[tuple[int, Item]],
        end: tuple[Item, float, int],
    ) -> None:
        if passing:
            above, there = passing[-1][1], 0.0
        else:
            above, there = self.of_box[start[0]], self.sizes[start[0]].outs[start[1]]
        # Close to the middle of the box: the small offset orders the boxes above by port, without
        # a drift of long chains through first ports.
        connect(above, there, end[0], 0.05 * end[1])
        links.append((above, there, end[0], end[1], end[2]))

    def set_heights(self) -> float:
        """Set the edges of each row, and return the lower end of the program."""
        y = sum(rail.given for rail in self.program.rails) * HEAD
        steep = [0.0] * len(self.rows)
        for links in self.links.values():
            for above, there, below, here, at in links:
                steep[at] = max(steep[at], abs(above.x + there - below.x - here))
        named = {self.row_of[i] for i, _ in self.far}
        for k, row in enumerate(self.rows):
            if k:
                y += max(GAP + min(30.0, steep[k] * 0.06), 34.0 if k in named else 0.0)
            self.tops.append(y)
            y += self.row_height(row)
            self.bottoms.append(y)
        return y

    def row_height(self, row: Sequence[int], folded: bool = False) -> float:
        heights = [0.0]
        for i in row:
            size = self.sizes[i]
            height = LINE if folded and self.boxes[i].frames else size.height
            below = 0.0 if folded and self.boxes[i].frames else LABEL if size.outs else 0.0
            heights.append(height + below)
        return max(heights)

    def rail_places(self, width: float) -> dict[Key, float]:
        """Return the x of each rail; columns of rails that have ended are reused."""
        columns = rail_columns(self.program)
        return {key: width + 10 + (column + 0.5) * RAIL for key, column in columns.items()}

    def placed(self, i: int, places: dict[Key, float]) -> PlacedBox:
        box, size, item = self.boxes[i], self.sizes[i], self.of_box[i]
        row = self.row_of[i]
        left, top = item.x - size.width / 2, self.tops[row]
        n = len(box.ins)
        ins = [
            Port(item.x + (k - (n - 1) / 2) * PORT, v, VAR_NAMES[v] if (i, k) in self.far else "")
            for k, v in enumerate(box.ins)
        ]
        outs = [Port(item.x + x, v.id, bound(v)) for x, v in zip(size.outs, box.outs, strict=True)]
        tapped = tuple([(places[tap.rail], tap) for tap in box.taps])
        folds = top + self.row_height(self.rows[row], folded=True)
        return PlacedBox(
            box,
            left,
            top,
            size.width,
            size.height,
            tuple(ins),
            tuple(outs),
            size.frames,
            tapped,
            folds,
        )

    def wire(self, v: int) -> Wire:
        source, port = self.ports[v]
        x = self.of_box[source].x + self.sizes[source].outs[port]
        start = self.tops[self.row_of[source]] + self.sizes[source].height
        links = self.links.get(v, [])
        straight = []
        if links:
            straight.append(((x, start), (x, self.bottoms[self.row_of[source]])))
        for k, item in self.passing.get(v, []):
            straight.append(((item.x, self.tops[k]), (item.x, self.bottoms[k])))
        bent = [
            ((above.x + there, self.bottoms[k - 1]), (below.x + here, self.tops[k]))
            for above, there, below, here, k in links
        ]
        return Wire(v, tuple(straight), tuple(bent))

    def placed_rails(self, places: dict[Key, float], bottom: float) -> tuple[PlacedRail, ...]:
        touched: dict[Key, list[float]] = {}
        for i, box in enumerate(self.boxes):
            for tap in box.taps:
                touched.setdefault(tap.rail, []).append(self.tops[self.row_of[i]] + LINE / 2)
        made: list[PlacedRail] = []
        head = HEAD / 2
        for rail in self.program.rails:
            ys = touched.get(rail.key, [])
            end = bottom if rail.given and not rail.ends else ys[-1]
            made.append(PlacedRail(rail, places[rail.key], head if rail.given else ys[0], end))
            head += HEAD if rail.given else 0.0
        return tuple(made)
