"""Steps of sorts, and of positions of extrema."""

from __future__ import annotations

from typing import Final

from effax.ir import prims as p
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.reduce import numbers
from effax.testing.generate.step import Steps


def position(g: ProgramBuilder) -> None:
    x = numbers(g, 1)
    axes = [a for a, n in enumerate(x.type.shape) if n]
    if not axes:
        g.one(p.Neg(), x)
        return
    axis, dtype = g.choose.pick(axes), g.features.ints[0]
    g.one(g.choose.pick((p.Argmax(axis, dtype), p.Argmin(axis, dtype))), x)


def sort(g: ProgramBuilder) -> None:
    x = numbers(g, 1)
    rest = g.maybe(lambda v: v.type.shape == x.type.shape and v.id not in g.linear)
    operands = [x] if rest is None or g.choose.chance(50) else [x, rest]
    axis = g.choose.below(len(x.type.shape))
    if g.choose.chance(30):
        g.emit(p.TopK(g.choose.below(x.type.shape[axis] + 1), axis), x)
        return
    g.emit(p.Sort(axis), *operands)


STEPS: Final = Steps(nonlinear=((1, position), (1, sort)))
