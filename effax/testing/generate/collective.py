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


def _groups(g: ProgramBuilder, axis: Axis, equal: bool = True) -> p.Groups | None:
    """Return a partition of the axis, in a part of the cases."""
    if not g.choose.chance(25):
        return None
    places = list(range(axis.size))
    order = [places.pop(g.choose.below(len(places))) for _ in range(axis.size)]
    sizes = [n for n in range(1, axis.size + 1) if not equal or axis.size % n == 0]
    size = g.choose.pick(sizes)
    return tuple([tuple(order[i : i + size]) for i in range(0, axis.size, size)])


def _divided(g: ProgramBuilder, axis: Axis, groups: p.Groups | None) -> tuple[Var, int] | None:
    """Return an array with a dimension of the size of a group, gathered if there is none."""
    size = len(groups[0]) if groups else axis.size
    found = g.maybe(lambda v: is_inexact_dtype(v.type.dtype) and size in v.type.shape)
    found = gather(g, axis, groups) if found is None else found
    return (found, found.type.shape.index(size)) if size in found.type.shape else None


def _is_explicit(g: ProgramBuilder) -> bool:
    """Return whether variance is explicit: inside of ``shard_map``, whose result discards it."""
    return "shard_map" in g.features.control


def psum(g: ProgramBuilder) -> None:
    axis, x = _axis(g), g.operand()
    shared = _is_explicit(g) and g.choose.chance(25)
    groups = None if shared else _groups(g, axis, equal=False)
    prim = p.PsumInvariant(axis) if shared else p.Psum(axis, groups=groups)
    g.squashed(g.one(prim, x, magnitude=g.magnitude(x) * axis.size))


def gather(g: ProgramBuilder, axis: Axis | None = None, groups: p.Groups | None = None) -> Var:
    if axis is None:
        axis = _axis(g)
        groups = _groups(g, axis)
    x = g.operand()
    if prod(x.type.shape) * axis.size > MAX_ELEMENTS:
        return x
    return g.one(p.AllGather(axis, g.choose.below(len(x.type.shape) + 1), groups=groups), x)


def scatter(g: ProgramBuilder) -> None:
    axis = _axis(g)
    groups = _groups(g, axis)
    found = _divided(g, axis, groups)
    if found is not None:
        x, at = found
        magnitude = g.magnitude(x) * axis.size
        g.squashed(g.one(p.ReduceScatter(axis, at, groups=groups), x, magnitude=magnitude))


def to_all(g: ProgramBuilder) -> None:
    axis = _axis(g)
    groups = _groups(g, axis)
    found = _divided(g, axis, groups)
    if found is not None:
        x, at = found
        g.one(p.AllToAll(axis, at, g.choose.below(len(x.type.shape)), groups=groups), x)


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
    kind = g.choose.pick((p.Pmax, p.Pmin))
    g.one(kind(axis, groups=_groups(g, axis, equal=False)), g.fixed())


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
