"""Mutable array references: creation, reads, writes, accumulation, ``freeze``."""

from __future__ import annotations

from effax.arrays.ref import Ref, RefAttributeError
from effax.arrays.ref_functions import addupdate, empty_ref, free_ref, freeze, get, new_ref, swap
from effax.arrays.ref_functions import write_ref as set

__all__ = [
    "Ref",
    "RefAttributeError",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
