"""Steps of comparison, extrema, logic, and integer arithmetic."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import is_integer
from effax.ir.primitive import Primitive
from effax.ir.syntax import Lit
from effax.testing.generate.program_builder import SHIFTS, ProgramBuilder, swapped
from effax.testing.generate.step import Steps

COMPARING: Final[tuple[Primitive, ...]] = (
    p.Lt(),
    p.Gt(),
    p.Le(),
    p.Ge(),
    p.Eq(),
    p.Ne(),
)


OF_BOOLEANS: Final[tuple[Primitive, ...]] = (p.And(), p.Or(), p.Xor(), p.Max(), p.Eq())


def extremum(g: ProgramBuilder) -> None:
    x = g.fixed()
    match g.choose.below(4):
        case 0:
            g.one(p.Max(), x, g.companion(x))
        case 1:
            g.one(p.Min(), *swapped(g, x, g.companion(x)))
        case 2:
            g.one(p.Abs(), x)
        case _:
            low, high = (g.literal(x.type.dtype, bound) for bound in (-0.7, 0.9))
            g.one(p.Clamp(), low, x, high)


def compare(g: ProgramBuilder) -> None:
    x = g.fixed()
    if g.choose.chance(15):
        g.one(p.IsFinite(), x)
        return
    prim = g.choose.pick(COMPARING[:4] if g.features.differentiable else COMPARING)
    y = g.companion(x)
    # Values that are equal up to rounding compare differently on other machines.
    g.one(prim, x, g.threshold(x.type.dtype) if isinstance(y, Lit) else y)


def booleans(g: ProgramBuilder) -> None:
    x = g.maybe(lambda v: v.type.dtype.kind == "b")
    if x is None:
        compare(g)
    elif g.choose.chance(30):
        g.one(p.Not(), x)
    else:
        g.one(g.choose.pick(OF_BOOLEANS), x, g.companion(x))


OF_INTEGERS: Final[tuple[Primitive, ...]] = (
    p.Add(),
    p.Sub(),
    p.Mul(),
    p.Max(),
    p.Min(),
    p.Rem(),
    p.Div(),
    p.And(),
    p.Or(),
    p.Xor(),
    p.ShiftLeft(),
    p.ShiftRightLogical(),
    p.ShiftRightArithmetic(),
)


OF_SHIFTS: Final = (p.ShiftLeft, p.ShiftRightLogical, p.ShiftRightArithmetic)


def integers(g: ProgramBuilder) -> None:
    x = g.maybe(lambda v: is_integer(v.type.dtype))
    if x is None:
        x = g.one(p.ConvertElementType(g.features.ints[0]), g.fixed())
    prim = g.choose.pick(OF_INTEGERS)
    if isinstance(prim, OF_SHIFTS) and g.choose.chance(60):
        bits = 8 * x.type.dtype.itemsize
        shift = g.choose.pick([s for s in SHIFTS if g.features.lowerable is False or s < bits])
        g.one(prim, x, g.literal(x.type.dtype, shift))
        return
    g.one(prim, *swapped(g, x, g.companion(x)))


STEPS: Final = Steps(
    fixed=((1, compare), (1, integers)),
    nonlinear=((2, extremum), (2, compare), (2, integers), (1, booleans)),
)
