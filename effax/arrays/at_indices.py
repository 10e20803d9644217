"""Indices of updates: traced masks and booleans, and positions that do not wrap around."""

from __future__ import annotations

import functools
from typing import Final, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.indexing import integer_positions
from effax.arrays.operators import ops
from effax.arrays.traced_array import TracedArray
from effax.ir.dtypes import family
from effax.ir.indexing import Mode
from effax.ir.types import Shape

FAR: Final = 2**31 - 1
"""A position out of bounds along any axis."""


def traced_mask(index: object, shape: Shape) -> TracedArray | None:
    """Return the index if it is a traced mask of leading axes, whose true positions are unknown."""
    if not isinstance(index, TracedArray) or family(index.dtype) != "bool":
        return None
    return index if index.shape == shape[: index.ndim] else None


def traced_truth(index: object) -> tuple[object, TracedArray | None]:
    """Return an index with traced booleans of a tuple replaced by True, and their conjunction."""
    if type(index) is not tuple:
        return index, None
    at = [isinstance(e, TracedArray) and e.type.shape == () and e.dtype == np.bool_ for e in index]
    found = [e for e, truth in zip(index, at, strict=True) if truth]
    if not found:
        return index, None
    entries = tuple([True if truth else e for e, truth in zip(index, at, strict=True)])
    return entries, cast(TracedArray, functools.reduce(ops.bitwise_and, found))


def unwrapped(index: object, mode: Mode) -> object:
    """Return an index in which negative positions are out of bounds."""
    far = 0 if mode is Mode.CLIP else FAR

    def entry(e: object) -> object:
        if isinstance(e, bool | np.bool_):
            return e
        if isinstance(e, int | np.integer):
            return far if e < 0 else e
        if isinstance(e, np.ndarray | Array) and e.dtype.kind in "iu":
            positions = integer_positions(e, "an index")
            return ops.where(ops.less(positions, 0), far, positions)
        return e

    return tuple(map(entry, index)) if isinstance(index, tuple) else entry(index)
