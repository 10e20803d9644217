"""Types of arguments and results of the public functions, for annotations."""

from __future__ import annotations

from effax.api.jit import JitFunction
from effax.api.linear_map import LinearMap
from effax.api.signature import NamedEffect, NamedEffects, Signature, Slot
from effax.api.stages import Compiled, Lowered
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.ref import Ref
from effax.arrays.ref_view import RefView
from effax.tree import PyTree, PyTreeDef

__all__ = [
    "Array",
    "ArrayLike",
    "Compiled",
    "DTypeLike",
    "JitFunction",
    "LinearMap",
    "Lowered",
    "NamedEffect",
    "NamedEffects",
    "PyTree",
    "PyTreeDef",
    "Ref",
    "RefView",
    "Signature",
    "Slot",
]
