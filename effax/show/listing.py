"""Lay out a long program as a list: one box a row, rails at the left.

Boxes are folded and opened without moving anything sideways, and a folded program is as wide as its
texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from effax.ir.text.names import VAR_NAMES
from effax.show.boxes import Box, Program
from effax.show.marks import SMALL
from effax.show.placed import (
    HEAD,
    LABEL,
    LINE,
    NAME,
    PAD,
    RAIL,
    Placed,
    PlacedBox,
    PlacedRail,
    Port,
    Size,
)
from effax.show.rails import Key, bound

BETWEEN: Final = 9.0
"""The distance of rows."""

STUB: Final = 26.0
"""The height of the names above results."""

WIDE: Final = 900.0
"""The width at which a row of inputs or results is broken."""

LISTED: Final = 110
"""The maximal length of the names and types of the results of a row."""


def place_list(program: Program, sizes: Sequence[Size]) -> Placed:
    """Return the coordinates of a program whose boxes have these sizes."""
    columns = rail_columns(program)
    left = (max(columns.values(), default=-1) + 1) * RAIL + (14.0 if columns else 0.0)
    places = {key: (column + 0.5) * RAIL for key, column in columns.items()}
    y = sum(rail.given for rail in program.rails) * HEAD
    x, bottom = left, y
    boxes: list[PlacedBox] = []
    before = ""
    for box, size in zip(program.boxes, sizes, strict=True):
        alone = box.kind not in ("in", "out")
        extent = max(size.width, size.width / 2 + size.right)
        if alone or box.kind != before or x + extent > left + WIDE:
            above = STUB if box.kind == "out" else BETWEEN if boxes else 0.0
            x, y = left, bottom + above
        placed = _placed(box, size, x, y, places)
        boxes.append(placed)
        bottom = max(bottom, y + placed.height + (LABEL if placed.outs else 0.0))
        x, before = x + extent + 2 * PAD, box.kind
    texts = [p.x + len(port.name) * SMALL + 12 for p in boxes for port in p.outs]
    heads = [p.x + (p.width if p.closed is None else p.closed) for p in boxes]
    rails = tuple(_rails(program, boxes, places, bottom))
    names = [r.x + NAME + len(r.rail.label) * SMALL for r in rails if r.rail.given]
    least = max([left, *texts, *heads, *names])
    width = max([least, *[p.x + p.width for p in boxes]])
    return Placed(width, bottom, tuple(boxes), (), rails, least)


def _placed(box: Box, size: Size, x: float, y: float, places: dict[Key, float]) -> PlacedBox:
    middle = x + size.width / 2
    ins = [Port(middle, v, VAR_NAMES[v]) for v in box.ins] if box.kind == "out" else []
    if box.kind == "in":
        outs = [
            Port(middle + at, v.id, bound(v)) for at, v in zip(size.outs, box.outs, strict=True)
        ]
    else:
        outs = [Port(x + 4, box.outs[0].id, _results(box))] if box.outs else []
    taps = tuple([(places[tap.rail], tap) for tap in box.taps])
    closed = size.head if box.frames else None
    return PlacedBox(
        box,
        x,
        y,
        size.width,
        size.height,
        tuple(ins),
        tuple(outs),
        size.frames,
        taps,
        y + LINE,
        closed,
    )


def _results(box: Box) -> str:
    """Return the names and types of results, as many as there is room for."""
    texts: list[str] = []
    for i, v in enumerate(box.outs):
        texts.append(bound(v))
        if i and sum(map(len, texts)) + len(texts) > LISTED:
            return f"{'  '.join(texts[:-1])}  … {len(box.outs) - i} more"
    return "  ".join(texts)


def _rails(
    program: Program, boxes: Sequence[PlacedBox], places: dict[Key, float], bottom: float
) -> Iterator[PlacedRail]:
    touched: dict[Key, list[float]] = {}
    for box in boxes:
        for tap in box.box.taps:
            touched.setdefault(tap.rail, []).append(box.y + LINE / 2)
    head = HEAD / 2
    for rail in program.rails:
        ys = touched.get(rail.key, [])
        end = bottom if rail.given and not rail.ends else ys[-1]
        yield PlacedRail(rail, places[rail.key], head if rail.given else ys[0], end)
        head += HEAD if rail.given else 0.0


def rail_columns(program: Program) -> dict[Key, int]:
    """Return the column of each rail; columns of rails that have ended are reused."""
    starts: dict[Key, int] = {}
    ends: dict[Key, int] = {}
    for i, box in enumerate(program.boxes):
        for tap in box.taps:
            starts.setdefault(tap.rail, i)
            ends[tap.rail] = i
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    columns: dict[Key, int] = {}
    for rail in program.rails:
        start = -1 if rail.given else starts[rail.key]
        while busy and busy[0][0] < start:
            heappush(free, heappop(busy)[1])
        column = heappop(free) if free else len(busy)
        stays = rail.given and not rail.ends
        heappush(busy, (len(program.boxes) if stays else ends[rail.key], column))
        columns[rail.key] = column
    return columns
