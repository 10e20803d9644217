"""Names for values, which policies of ``checkpoint`` know; ``checkpoint`` itself; what is kept."""

from __future__ import annotations

from typing import TypeVar

from effax import checkpoint_policies, tree
from effax.api.remat import checkpoint
from effax.api.saved import print_saved_residuals, saved_residuals
from effax.arrays.binding import bind1
from effax.arrays.device_array import as_value
from effax.ir.errors import BadArgument
from effax.ir.prims import Name

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "saved_residuals",
]

T = TypeVar("T")


def checkpoint_name(x: T, name: str) -> T:
    """``x``, a tree of arrays, as it is; its leaves are called ``name``."""
    if not isinstance(name, str):
        raise BadArgument("a name is a string", found=f"{type(name).__name__}: {name!r:.60}")
    made: T = tree.map(lambda leaf: bind1(Name(name), as_value(leaf)), x)
    return made
