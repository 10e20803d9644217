"""Steps of selection, conversion, and complex parts."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import family, is_complex
from effax.ir.primitive import Primitive
from effax.ir.syntax import Var
from effax.testing.generate.program_builder import ProgramBuilder, swapped
from effax.testing.generate.step import Steps


def select(g: ProgramBuilder) -> None:
    x = g.operand()
    y = g.companion(x)
    which = g.maybe(lambda v: v.type.dtype.kind == "b" and v.type.shape == x.type.shape)
    cases = swapped(g, x, y)
    if which is None or (x.type.shape and g.choose.chance(30)):
        g.one(p.SelectN(), g.predicate(), *cases)
    else:
        g.one(p.SelectN(), which, *cases)


def select_many(g: ProgramBuilder) -> None:
    x = g.operand()
    index = g.integer()
    if index.type.dtype.name == "int32":
        y = g.companion(x)
        z = g.companion(y if isinstance(y, Var) and y.type.shape else x)
        g.one(p.SelectN(), index, x, y, z)
    else:
        g.one(p.Neg(), x)


def convert(g: ProgramBuilder) -> None:
    x = g.any_array()
    kind = family(x.type.dtype)
    features = g.features
    if kind == "complex":
        g.one(p.ConvertElementType(g.choose.pick(features.complexes)), x)
    elif kind == "key":
        g.one(p.Copy(), x)
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


STEPS: Final = Steps(
    linear=((2, select), (1, select_many), (1, convert)), complexes=((2, complexes),)
)
