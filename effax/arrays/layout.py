"""Layouts of arrays in memory: row-major ones only."""

from __future__ import annotations

from effax.arrays.sharding import Sharding
from effax.lazy.dataclasses import dataclass

__all__ = ["Format", "Layout"]


@dataclass(frozen=True)
class ArrayLayout:
    """The order of axes in memory, slowest first."""

    major_to_minor: tuple[int, ...]


@dataclass(frozen=True)
class Format:
    """A layout and a sharding; None leaves the choice to the compiler."""

    layout: ArrayLayout | None = None
    sharding: Sharding | None = None


Layout = ArrayLayout


def row_major(ndim: int, sharding: Sharding) -> Format:
    """Return the format of arrays of so many axes."""
    return Format(Layout(tuple(range(ndim))), sharding)
