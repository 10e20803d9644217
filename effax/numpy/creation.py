"""Creation of arrays: from Python and NumPy values, constants and ranges."""

from __future__ import annotations

from effax.arrays.creation import (
    array,
    asarray,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)

__all__ = [
    "array", "asarray", "copy", "empty", "empty_like", "full", "full_like", "ones", "ones_like",
    "zeros", "zeros_like",
]  # fmt: skip
