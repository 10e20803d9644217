"""Steps that append elementwise equations."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import family, is_complex, is_integer
from effax.ir.primitive import Primitive
from effax.ir.prims import Name, OptimizationBarrier
from effax.ir.syntax import Atom, Lit, Var
from effax.testing.generate.program_builder import ProgramBuilder

BOUNDED: Final[tuple[Primitive, ...]] = (
    p.Sin(),
    p.Cos(),
    p.Tanh(),
    p.Logistic(),
    p.Atan(),
    p.Erf(),
    p.Asinh(),
)
"""Smooth everywhere, and small: the results are of magnitude 1, or little more."""

GROWING: Final[tuple[Primitive, ...]] = (
    p.Exp(),
    p.Square(),
    p.IntegerPow(3),
    p.Sinh(),
    p.Cosh(),
    p.Expm1(),
    p.Exp2(),
)
"""Smooth everywhere, and large for large operands."""

JUMPING: Final[tuple[Primitive, ...]] = (
    p.StopGradient(),
    p.Floor(),
    p.Sign(),
    p.Ceil(),
    p.RoundEven(),
)
"""Constant almost everywhere, or said to be."""

COMPARING: Final[tuple[Primitive, ...]] = (
    p.Lt(),
    p.Gt(),
    p.Le(),
    p.Ge(),
    p.Eq(),
    p.Ne(),
)

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

OF_BOOLEANS: Final[tuple[Primitive, ...]] = (p.And(), p.Or(), p.Xor(), p.Max(), p.Eq())


def smooth(g: ProgramBuilder) -> None:
    """A bounded function of one operand."""
    g.one(g.choose.pick(BOUNDED), g.fixed(), magnitude=1.6)


def growing(g: ProgramBuilder) -> None:
    """A function that may be large, of an operand that is not."""
    x = g.fixed()
    if g.magnitude(x) > 3:
        x = g.one(p.Tanh(), x, magnitude=1.0)
    g.one(g.choose.pick(GROWING), x, magnitude=g.magnitude(x) ** 3 + 3)


def jumping(g: ProgramBuilder) -> None:
    """A function whose derivative is zero, or is said to be."""
    g.one(g.choose.pick(JUMPING), g.fixed())


def of_positive(g: ProgramBuilder) -> None:
    """A function of positive numbers, or one with a pole, where it is smooth."""
    x = g.fixed()
    positive = g.one(p.Logistic(), x, magnitude=1.0)
    prims = (p.Sqrt(), p.Log(), p.Log1p(), p.Rsqrt(), p.IntegerPow(-1), p.Cbrt(), p.Asin())
    g.one(g.choose.pick(prims), positive, magnitude=8.0)


def negate(g: ProgramBuilder) -> None:
    """The operand with the other sign, or a copy of it, or the operand with a name."""
    prims = (p.Neg(), p.Copy(), Name("a"), Name("b"), OptimizationBarrier())
    g.one(g.choose.pick(prims), g.operand())


def add(g: ProgramBuilder) -> None:
    """A sum or difference, of linear operands too."""
    x = g.operand()
    y = g.companion(x)
    magnitude = g.magnitude(x) + g.magnitude(y)
    g.squashed(g.one(g.choose.pick((p.Add(), p.Sub())), *swapped(g, x, y), magnitude=magnitude))


def mul(g: ProgramBuilder) -> None:
    """A product, of which one factor may be linear."""
    x = g.operand()
    y = g.companion(x, linear=False)
    magnitude = g.magnitude(x) * max(g.magnitude(y), 0.1)
    g.squashed(g.one(p.Mul(), *swapped(g, x, y), magnitude=magnitude))


def div(g: ProgramBuilder) -> None:
    """A quotient, with a divisor that is not near zero."""
    x = g.operand()
    divisor: Atom = g.literal(x.type.dtype, 2.0)
    y = g.companion(x, linear=False)
    if isinstance(y, Var):
        square = g.one(p.Square(), g.squashed(y), magnitude=4.0)
        divisor = g.one(p.Add(), square, g.literal(x.type.dtype, 1.0))
    g.one(p.Div(), x, divisor)


def power(g: ProgramBuilder) -> None:
    """A power with a positive base, an angle, or a remainder, of two operands."""
    x = g.fixed()
    y = g.companion(x, linear=False)
    prim = g.choose.pick((p.Pow(), p.Atan2(), p.Rem()))
    if isinstance(prim, p.Pow):
        x = g.one(p.Logistic(), x, magnitude=1.0)
        y = g.one(p.Tanh(), y, magnitude=1.0)
    else:
        # Away from zero, where an angle turns quickly and a remainder jumps often.
        y = g.one(p.Cosh(), g.one(p.Tanh(), y, magnitude=1.0), magnitude=1.6)
    g.one(prim, x, y, magnitude=g.magnitude(x) + 4)


def extremum(g: ProgramBuilder) -> None:
    """A maximum, a minimum, an absolute value, or a value kept between bounds."""
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


def select(g: ProgramBuilder) -> None:
    """A choice among linear values, or among values that are not."""
    x = g.operand()
    y = g.companion(x)
    which = g.maybe(lambda v: v.type.dtype.kind == "b" and v.type.shape == x.type.shape)
    cases = swapped(g, x, y)
    if which is None or (x.type.shape and g.choose.chance(30)):
        g.one(p.SelectN(), g.predicate(), *cases)
    else:
        g.one(p.SelectN(), which, *cases)


def select_many(g: ProgramBuilder) -> None:
    """A choice of three by an integer."""
    x = g.operand()
    index = g.integer()
    if index.type.dtype.name == "int32":
        y = g.companion(x)
        z = g.companion(y if isinstance(y, Var) and y.type.shape else x)
        g.one(p.SelectN(), index, x, y, z)
    else:
        g.one(p.Neg(), x)


def compare(g: ProgramBuilder) -> None:
    """A comparison of floats, or a test of them."""
    x = g.fixed()
    if g.choose.chance(15):
        g.one(p.IsFinite(), x)
        return
    prim = g.choose.pick(COMPARING[:4] if g.features.differentiable else COMPARING)
    y = g.companion(x)
    # What is equal but for rounding compares one way here and another way there.
    g.one(prim, x, g.threshold(x.type.dtype) if isinstance(y, Lit) else y)


def integers(g: ProgramBuilder) -> None:
    """Arithmetic of integers."""
    x = g.maybe(lambda v: is_integer(v.type.dtype))
    if x is None:
        x = g.one(p.ConvertElementType(g.features.ints[0]), g.fixed())
    prim = g.choose.pick(OF_INTEGERS)
    g.one(prim, *swapped(g, x, g.companion(x)))


def booleans(g: ProgramBuilder) -> None:
    """Logic."""
    x = g.maybe(lambda v: v.type.dtype.kind == "b")
    if x is None:
        compare(g)
    elif g.choose.chance(30):
        g.one(p.Not(), x)
    else:
        g.one(g.choose.pick(OF_BOOLEANS), x, g.companion(x))


def convert(g: ProgramBuilder) -> None:
    """A conversion to another dtype."""
    x = g.any_array()
    kind = family(x.type.dtype)
    features = g.features
    if kind == "complex":
        g.one(p.ConvertElementType(g.choose.pick(features.complexes)), x)
    elif kind != "float":
        g.one(p.ConvertElementType(g.choose.pick((*features.floats, *features.ints))), x)
    elif g.is_linear(x):
        g.one(p.ConvertElementType(g.choose.pick(features.floats)), x)
    elif features.lowerable:
        # Beyond the range of an integer, conversions differ between machines.
        g.one(p.ConvertElementType(features.ints[0]), g.one(p.Tanh(), x, magnitude=1.0))
    else:
        g.one(p.ConvertElementType(g.choose.pick((*features.ints, *features.floats))), x)


OF_COMPLEX: Final[tuple[Primitive, ...]] = (
    p.Real(),
    p.Imag(),
    p.Abs(),
    p.Conj(),
    p.Neg(),
    p.Sin(),
    p.Exp(),
)


def complexes(g: ProgramBuilder) -> None:
    """A complex number made of two floats, or something done with one."""
    z = g.maybe(lambda v: is_complex(v.type.dtype) and v.id not in g.linear)
    if z is None or g.choose.chance(20):
        x = g.fixed()
        if x.type.dtype.itemsize >= 4:
            g.one(p.Complex(), x, g.companion(x))
        return
    match g.choose.below(3):
        case 0:
            prim = g.choose.pick(OF_COMPLEX)
            if prim in OF_COMPLEX[-2:] and g.magnitude(z) > 2:
                z = g.one(p.Mul(), z, g.literal(z.type.dtype, 1 / g.magnitude(z)), magnitude=1.0)
            g.one(prim, z, magnitude=g.magnitude(z) + 2)
        case 1:
            w = g.companion(z)
            g.one(p.Add(), z, w, magnitude=g.magnitude(z) + g.magnitude(w))
        case _:
            w = g.companion(z)
            g.squashed(g.one(p.Mul(), z, w, magnitude=g.magnitude(z) * g.magnitude(w)))


def swapped(g: ProgramBuilder, x: Atom, y: Atom) -> tuple[Atom, Atom]:
    """Two operands in one order or the other."""
    return (y, x) if g.choose.chance(30) else (x, y)
