"""Properties of values that pass from operands to results, and into references.

``jvp`` propagates which values have a tangent, ``vmap`` which are batched: boolean analyses
(``ir/analysis/dataflow.py``) whose transfer functions are the templates of the pass.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from effax.ir.analysis.dataflow import Analysis, Positions
from effax.ir.primitive import Primitive
from effax.ir.prims import EmptyRef, NewRef
from effax.ir.recursion import kinds_of
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType, Type

Mask = tuple[bool, ...]

REF_ALLOCATORS: Final = (NewRef, EmptyRef)
"""The primitives that allocate a reference. A test of the type is faster than ``isinstance``."""


class Property(Analysis[bool]):
    """A boolean property of values, propagated by the rules of a pass."""

    bottom = False

    @abstractmethod
    def outs(self, prim: Primitive, types: tuple[Type, ...], ins: Mask) -> Mask:
        """Return which results of an application have the property, for operands that have it."""

    def join(self, first: bool, second: bool) -> bool:
        return first or second

    def transfer(self, eqn: Eqn, ins: Mask) -> Mask:
        return self.outs(eqn.prim, tuple([a.type for a in eqn.ins]), ins)

    def call(self, eqn: Eqn, ins: Mask, fixed: Positions) -> tuple[Mask, Mask]:
        grown, outs = super().call(eqn, ins, fixed)
        # A primitive with rules of its own propagates by them, not by its subjaxpr.
        return grown, self.transfer(eqn, grown) if eqn.prim.has_own_rules else outs


def mentions_refs(jaxpr: Jaxpr) -> bool:
    """Return whether an input of the program is a reference, or the program allocates one."""
    allocates = not kinds_of(jaxpr).isdisjoint(REF_ALLOCATORS)
    return allocates or any(isinstance(v.type, RefType) for v in jaxpr.binders)


def uses_axis(prim: Primitive, name: str) -> bool:
    """Return whether an application needs the axis of this name."""
    return any(axis.name == name for axis in prim.free_axes())
