"""Slices of a static size from a start that may be traced."""

from __future__ import annotations

import operator
from typing import NamedTuple

from effax.arrays.array import ArrayLike
from effax.ir.errors import BadArgument


class DynamicSpan(NamedTuple):
    """A slice whose start may be traced; its size is static. Made by :func:`ds`."""

    start: object
    size: int
    stride: int = 1

    @property
    def reach(self) -> int:
        """The number of positions from the first to the last, both included."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


def ds(
    start: ArrayLike | None, size: int | None = None, stride: int | None = None
) -> DynamicSpan | slice:
    """Return an index of ``size`` positions from ``start``.

    Args:
        start: integer scalar, clamped so that the slice fits, as in ``lax.dynamic_slice``; the
            size of a slice from 0 if there is no ``size``; None for all positions, or from 0.
        size: static size.
        stride: distance of positions, at least 1.

    Returns:
        Index for arrays and references.

    Raises:
        BadArgument: the stride is less than 1.

    >>> jnp.arange(5)[lax.ds(1, 2)]
    Array([1, 2], dtype=int32)
    >>> jnp.arange(5)[lax.ds(1, 2, 3)]
    Array([1, 4], dtype=int32)
    """
    step = 1 if stride is None else operator.index(stride)
    if step < 1:
        raise BadArgument("the stride of a slice is not positive", "at least 1", str(step))
    if size is None:
        if start is None:
            return slice(None, None, stride)
        return DynamicSpan(0, operator.index(start), step)  # type: ignore[arg-type]  # checked
    return DynamicSpan(0 if start is None else start, operator.index(size), step)
