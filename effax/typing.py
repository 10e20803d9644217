"""The types of what functions here take and give, for annotations of your own."""

from __future__ import annotations

from effax.api.autodiff import LinearMap
from effax.api.jit import Compiled, JitFunction, Lowered
from effax.api.signature import NamedEffect, Signature, Slot
from effax.array import Array, ArrayLike, DTypeLike
from effax.ref import Ref
from effax.refview import RefView
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
    "PyTree",
    "PyTreeDef",
    "Ref",
    "RefView",
    "Signature",
    "Slot",
]
