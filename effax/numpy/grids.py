"""Arrays that are written as slices: grids, rows and columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.joining import concatenate, stack
from effax.arrays.shapes import broadcast_arrays, moveaxis, reshape
from effax.ir.errors import BadArgument
from effax.numpy.ranges import arange, linspace

__all__ = [
    "c_", "index_exp", "mgrid", "ogrid", "r_", "s_",
]  # fmt: skip

index_exp: Final = np.index_exp
s_: Final = np.s_


def _line(part: slice) -> Array:
    """Return the points of a slice; an imaginary step is their number, with both ends."""
    start = 0 if part.start is None else part.start
    stop = 0 if part.stop is None else part.stop
    if isinstance(part.step, complex):
        return linspace(start, stop, int(abs(part.step)))
    if isinstance(start, float) or isinstance(stop, float) or isinstance(part.step, float):
        # In double precision, on which the number of points depends.
        return asarray(np.arange(start, stop, part.step))
    return arange(start, stop, part.step)


class _Grid:
    """Grids of points, indexed by slices."""

    def __init__(self, name: str, dense: bool) -> None:
        self._name: str = name
        self._dense: bool = dense

    def __repr__(self) -> str:
        return f"jnp.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        lines = [_line(part) for part in key]
        n = len(lines)
        thin = [
            reshape(x, [-1 if j == i else 1 for j, _ in enumerate(lines)])
            for i, x in enumerate(lines)
        ]
        if not self._dense:
            return thin
        return stack(broadcast_arrays(*thin)) if n else asarray([], int)


mgrid: Final = _Grid("mgrid", True)
ogrid: Final = _Grid("ogrid", False)


class _Joined:
    """Arrays, numbers and slices, joined along an axis by an index.

    A text first says how: the axis; after a comma the least number of axes; after another where
    the axes of what has fewer come.
    """

    def __init__(self, name: str, axis: int, least: int, place: int) -> None:
        self._name: str = name
        self._default: tuple[int, int, int] = (axis, least, place)

    def __repr__(self) -> str:
        return f"jnp.{self._name}"

    def __getitem__(self, key: Any) -> Array:
        parts = key if isinstance(key, tuple) else (key,)
        axis, least, place = self._default
        if parts and isinstance(parts[0], str):
            text, *parts = parts  # type: ignore[assignment]  # the rest
            if text in ("r", "c"):
                row = self[tuple(parts)]
                return row if row.ndim > 1 else reshape(row, (1, -1) if text == "r" else (-1, 1))
            axis, least, place = self._directive(text)
        arrays = [self._part(part, least, place) for part in parts]
        return concatenate(arrays, axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise BadArgument(
                f"{self!r} could not understand directive {text!r}", "'axis,ndim,place', 'r' or 'c'"
            ) from None
        axis, least, place = (*numbers, *self._default[len(numbers) :])
        return axis, least, place

    @staticmethod
    def _part(part: Any, least: int, place: int) -> Array:
        value = _line(part) if isinstance(part, slice) else as_value(asarray(part))
        own, least = value.ndim, max(least, 1)
        if own >= least:
            return value
        value = reshape(value, (1,) * (least - own) + value.shape)
        if not own or place == -1:
            return value
        # The axes of the value start at this place, and new ones come around them.
        new = value.ndim - own
        first = place if place >= 0 else place + 1 + new
        return moveaxis(value, range(new, value.ndim), range(first, first + own))


r_: Final = _Joined("r_", 0, 1, -1)
c_: Final = _Joined("c_", -1, 2, 0)
