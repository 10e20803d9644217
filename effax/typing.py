"""The types of what functions here take and give, for annotations of your own."""

from __future__ import annotations

from effax.array import Array, ArrayLike, DTypeLike
from effax.ref import Ref
from effax.tree import PyTree, PyTreeDef

__all__ = ["Array", "ArrayLike", "DTypeLike", "PyTree", "PyTreeDef", "Ref"]
