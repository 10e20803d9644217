"""Steps of arithmetic and rounding."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.prims import Name, OptimizationBarrier
from effax.ir.syntax import Atom, Var
from effax.testing.generate.program_builder import DIVISORS, ProgramBuilder, swapped
from effax.testing.generate.step import Steps

JUMPING: Final[tuple[Primitive, ...]] = (
    p.StopGradient(),
    p.Floor(),
    p.Sign(),
    p.Ceil(),
    p.RoundEven(),
)
"""Primitives that are constant almost everywhere, or treated as such."""


def jumping(g: ProgramBuilder) -> None:
    g.one(g.choose.pick(JUMPING), g.fixed())


def negate(g: ProgramBuilder) -> None:
    prims = (p.Neg(), p.Copy(), Name("a"), Name("b"), OptimizationBarrier())
    g.one(g.choose.pick(prims), g.operand())


def add(g: ProgramBuilder) -> None:
    x = g.operand()
    y = g.companion(x)
    magnitude = g.magnitude(x) + g.magnitude(y)
    g.squashed(g.one(g.choose.pick((p.Add(), p.Sub())), *swapped(g, x, y), magnitude=magnitude))


def mul(g: ProgramBuilder) -> None:
    x = g.operand()
    y = g.companion(x, linear=False)
    magnitude = g.magnitude(x) * max(g.magnitude(y), 0.1)
    g.squashed(g.one(p.Mul(), *swapped(g, x, y), magnitude=magnitude))


def div(g: ProgramBuilder) -> None:
    x = g.operand()
    divisor: Atom = g.literal(x.type.dtype, g.choose.pick(DIVISORS))
    magnitude = g.magnitude(x) / min(g.magnitude(divisor), 1.0)
    y = g.companion(x, linear=False)
    if isinstance(y, Var):
        square = g.one(p.Square(), g.squashed(y), magnitude=4.0)
        divisor = g.one(p.Add(), square, g.literal(x.type.dtype, 1.0))
        magnitude = g.magnitude(x)
    g.squashed(g.one(p.Div(), x, divisor, magnitude=magnitude))


STEPS: Final = Steps(
    linear=((2, negate), (4, add), (4, mul), (1, div)),
    jumping=((1, jumping),),
)
