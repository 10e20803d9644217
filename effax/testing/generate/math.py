"""Steps of elementary functions."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.primitive import Primitive
from effax.ir.syntax import Lit
from effax.testing.generate.program_builder import EXPONENTS, ProgramBuilder
from effax.testing.generate.step import Steps

BOUNDED: Final[tuple[Primitive, ...]] = (
    p.Sin(),
    p.Cos(),
    p.Tanh(),
    p.Logistic(),
    p.Atan(),
    p.Erf(),
    p.Asinh(),
)
"""Smooth functions with results of magnitude about 1."""


GROWING: Final[tuple[Primitive, ...]] = (
    p.Exp(),
    p.Square(),
    p.Sinh(),
    p.Cosh(),
    p.Expm1(),
    p.Exp2(),
)
"""Smooth functions with large results for large operands."""


POWERS: Final = (0.5, 2.0, -1.0, 3.0, 1.0, 0.0, -0.5, 1.5)
"""Constant exponents of ``pow``."""


def smooth(g: ProgramBuilder) -> None:
    g.one(g.choose.pick(BOUNDED), g.fixed(), magnitude=1.6)


def growing(g: ProgramBuilder) -> None:
    x = g.fixed()
    if g.magnitude(x) > 3:
        x = g.one(p.Tanh(), x, magnitude=1.0)
    if g.choose.chance(25):
        y = g.choose.pick([y for y in EXPONENTS if y >= 0])
        g.squashed(g.one(p.IntegerPow(y), x, magnitude=max(g.magnitude(x), 1.0) ** y))
        return
    g.one(g.choose.pick(GROWING), x, magnitude=g.magnitude(x) ** 3 + 3)


def of_positive(g: ProgramBuilder) -> None:
    x = g.fixed()
    positive = g.one(p.Logistic(), x, magnitude=1.0)
    prims = (p.Sqrt(), p.Log(), p.Log1p(), p.Rsqrt(), p.Cbrt(), p.Asin())
    if g.choose.chance(15):
        y = g.choose.pick([y for y in EXPONENTS if y < 0])
        g.squashed(g.one(p.IntegerPow(y), positive, magnitude=8.0**-y))
        return
    g.one(g.choose.pick(prims), positive, magnitude=8.0)


def power(g: ProgramBuilder) -> None:
    x = g.fixed()
    y = g.companion(x, linear=False)
    prim = g.choose.pick((p.Pow(), p.Atan2(), p.Rem()))
    if isinstance(prim, p.Pow):
        x = g.one(p.Logistic(), x, magnitude=1.0)
        y = (
            g.literal(x.type.dtype, g.choose.pick(POWERS))
            if isinstance(y, Lit) or g.choose.chance(40)
            else g.one(p.Tanh(), y, magnitude=1.0)
        )
    else:
        # Away from zero, where angles vary quickly and remainders jump often.
        y = g.one(p.Cosh(), g.one(p.Tanh(), y, magnitude=1.0), magnitude=1.6)
    g.one(prim, x, y, magnitude=g.magnitude(x) + 4)


STEPS: Final = Steps(
    fixed=((2, smooth),),
    nonlinear=((5, smooth), (2, growing), (1, of_positive), (1, power)),
)
