"""Signs of integers that follow from the equations of a program."""

from __future__ import annotations

from typing import Final

from effax.ir.build import Builder
from effax.ir.dtypes import int_bounds, is_integer
from effax.ir.prims import (
    Argmax,
    Argmin,
    AxisIndex,
    BroadcastInDim,
    Clamp,
    ConvertElementType,
    Iota,
    Max,
    Min,
    Rem,
    Reshape,
    Rev,
    Slice,
    Squeeze,
    Transpose,
)
from effax.ir.syntax import Atom, Eqn, Lit

POSITIONS: Final = (Iota, Argmax, Argmin, AxisIndex)
"""Primitives whose results are positions."""

REARRANGED: Final = (BroadcastInDim, Reshape, Rev, Slice, Squeeze, Transpose)
"""Primitives whose results are elements of the operand."""

FOLLOWED: Final = (*REARRANGED, Clamp, ConvertElementType, Max, Min, Rem)
"""Primitives whose results have the signs of operands."""

DEPTH: Final = 8
"""The equations that are followed at most."""


def is_nonnegative(b: Builder, x: Atom, depth: int = DEPTH) -> bool:
    """Return whether the equations so far show that an integer is not negative."""
    if isinstance(x, Lit):
        return not isinstance(x.value, complex) and x.value >= 0
    if x.type.dtype.kind in "ub":
        return True
    eqn = b.equation_of(x) if depth else None
    if eqn is None:
        return False
    if isinstance(eqn.prim, POSITIONS):
        return True
    if not isinstance(eqn.prim, FOLLOWED):
        return False
    known = [is_nonnegative(b, a, depth - 1) for a in eqn.ins]
    match eqn.prim:
        case Max():
            return any(known)
        case Clamp():
            return known[0] and known[2]
        case Rem():
            return known[0]
        case ConvertElementType():
            return known[0] and _fits(eqn)
        case _:
            return all(known)


def _fits(eqn: Eqn) -> bool:
    """Return whether the greatest integer of the operand's dtype is one of the result's."""
    have, to = eqn.ins[0].type.dtype, eqn.outs[0].type.dtype
    if have.kind == "b":
        return True
    return is_integer(have) and is_integer(to) and int_bounds(have)[1] <= int_bounds(to)[1]
