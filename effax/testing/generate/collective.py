"""Steps of collectives, along the axes of the program."""

from __future__ import annotations

from math import prod
from typing import Final

from effax.ir.axes import Axis
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.prims import ConvertElementType
from effax.ir.prims import collective as p
from effax.ir.syntax import Var
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.step import Steps


def _axis(g: ProgramBuilder) -> Axis:
    return g.choose.pick(g.axes)


def _divided(g: ProgramBuilder, axis: Axis) -> tuple[Var, int]:
    """Return an array with a dimension of the size of the axis, gathered if there is none."""
    found = g.maybe(lambda v: is_inexact_dtype(v.type.dtype) and axis.size in v.type.shape)
    if found is not None:
        return found, found.type.shape.index(axis.size)
    return gather(g, axis), 0


def _is_explicit(g: ProgramBuilder) -> bool:
    """Return whether variance is explicit: inside of ``shard_map``, whose result discards it."""
    return "shard_map" in g.features.control


def psum(g: ProgramBuilder) -> None:
    axis, x = _axis(g), g.operand()
    kind = p.PsumInvariant if _is_explicit(g) and g.choose.chance(25) else p.Psum
    g.squashed(g.one(kind(axis), x, magnitude=g.magnitude(x) * axis.size))


def gather(g: ProgramBuilder, axis: Axis | None = None) -> Var:
    axis = axis or _axis(g)
    x = g.operand()
    if prod(x.type.shape) * axis.size > MAX_ELEMENTS:
        return x
    return g.one(p.AllGather(axis, g.choose.below(len(x.type.shape) + 1)), x)


def scatter(g: ProgramBuilder) -> None:
    axis = _axis(g)
    x, at = _divided(g, axis)
    if x.type.shape[at : at + 1] == (axis.size,):
        magnitude = g.magnitude(x) * axis.size
        g.squashed(g.one(p.ReduceScatter(axis, at), x, magnitude=magnitude))


def to_all(g: ProgramBuilder) -> None:
    axis = _axis(g)
    x, at = _divided(g, axis)
    if x.type.shape[at : at + 1] == (axis.size,):
        g.one(p.AllToAll(axis, at, g.choose.below(len(x.type.shape))), x)


def permute(g: ProgramBuilder) -> None:
    axis, x = _axis(g), g.operand()
    n = axis.size
    shift = g.choose.below(n)
    perm = [(i, (i + shift) % n) for i in range(n)]
    g.one(p.PPermute(axis, tuple(g.choose.subset(perm, 75))), x)


def vary(g: ProgramBuilder) -> None:
    if _is_explicit(g):
        g.one(p.Pvary(_axis(g)), g.operand())
    else:
        permute(g)


def index(g: ProgramBuilder) -> None:
    place = g.one(p.AxisIndex(_axis(g)))
    g.one(ConvertElementType(g.features.floats[0]), place, magnitude=3.0)


def extremum(g: ProgramBuilder) -> None:
    axis = _axis(g)
    g.one(g.choose.pick((p.Pmax(axis), p.Pmin(axis))), g.fixed())


STEPS: Final = Steps(
    axes=(
        (24, psum),
        (9, gather),
        (12, scatter),
        (12, to_all),
        (12, permute),
        (6, vary),
        (9, index),
    ),
    jumping_axes=((9, extremum),),
)
