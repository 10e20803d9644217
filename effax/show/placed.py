"""Programs with coordinates: boxes, wires and rails."""

from __future__ import annotations

from typing import Final, NamedTuple

from effax.show.boxes import Box, Tap
from effax.show.rails import Rail

Point = tuple[float, float]

LINE: Final = 22.0
"""The height of a box with one line, and of the head of a box with subjaxprs."""
DETAIL: Final = 13.0
LABEL: Final = 15.0
"""The height of the labels under a box."""
GAP: Final = 24.0
"""The least height between rows."""
PAD: Final = 12.0
RAIL: Final = 34.0
"""The width of a rail."""
HEAD: Final = 18.0
"""The height of the name of a rail that is an input."""
NAME: Final = 12.0
"""The distance of a reference's name from its rail."""
PORT: Final = 14.0
NEAR: Final = 10
"""The maximal number of rows of a wire; uses further down are named instead."""
CROWD: Final = 16
"""The maximal number of wires through a row."""


class Port(NamedTuple):
    """The place at which an array enters or leaves a box, with its label ``name``."""

    x: float
    var: int
    name: str


class PlacedFrame(NamedTuple):
    """A subjaxpr inside a box, at a place relative to the box."""

    caption: str
    x: float
    y: float
    program: Placed


class PlacedBox(NamedTuple):
    """A box with its left upper corner. ``outs`` are labelled, ``ins`` only where no wire ends.

    ``taps`` have the x of their rails. ``folds`` is the bottom of the row when the box is folded,
    ``closed`` its width then, in a program that is listed.
    """

    box: Box
    x: float
    y: float
    width: float
    height: float
    ins: tuple[Port, ...]
    outs: tuple[Port, ...]
    frames: tuple[PlacedFrame, ...]
    taps: tuple[tuple[float, Tap], ...]
    folds: float
    closed: float | None = None


class Wire(NamedTuple):
    """The lines of one array: straight within rows, bent between them."""

    var: int
    straight: tuple[tuple[Point, Point], ...]
    bent: tuple[tuple[Point, Point], ...]


class PlacedRail(NamedTuple):
    """A reference's line."""

    rail: Rail
    x: float
    top: float
    bottom: float


class Placed(NamedTuple):
    """A program with coordinates, the left upper corner at (0, 0).

    ``least`` is the width when all boxes are folded, in a program that is listed.
    """

    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    wires: tuple[Wire, ...]
    rails: tuple[PlacedRail, ...]
    least: float | None = None


class Size(NamedTuple):
    """The size of a box; ``right`` is the extent of its labels from its middle.

    ``head`` is the width of its text.
    """

    width: float
    height: float
    right: float
    outs: tuple[float, ...]
    frames: tuple[PlacedFrame, ...]
    head: float
