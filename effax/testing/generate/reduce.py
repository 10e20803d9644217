"""Steps of reductions."""

from __future__ import annotations

from math import prod
from typing import Final

from effax.ir import prims as p
from effax.ir.syntax import Var
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.shape import is_real
from effax.testing.generate.step import Steps


def _axes(g: ProgramBuilder, x: Var) -> tuple[int, ...]:
    """Return some axes; all of them is the simplest."""
    axes = range(len(x.type.shape))
    kept = g.choose.subset(axes)
    return tuple(a for a in axes if a not in kept)


def numbers(g: ProgramBuilder, min_ndim: int) -> Var:
    """Return real numbers that are not linear, floats mostly."""
    found = None
    if g.choose.chance(25):
        found = g.maybe(
            lambda v: is_real(v) and v.id not in g.linear and len(v.type.shape) >= min_ndim
        )
    return g.fixed(min_ndim) if found is None else found


def sum_(g: ProgramBuilder) -> None:
    x = g.operand(1)
    axes = _axes(g, x)
    count = prod(x.type.shape[a] for a in axes)
    g.squashed(g.one(p.ReduceSum(axes), x, magnitude=g.magnitude(x) * max(count, 1)))


def extremum(g: ProgramBuilder) -> None:
    x = numbers(g, 1)
    axes = _axes(g, x)
    if any(x.type.shape[a] == 0 for a in axes):
        axes = ()
    g.one(g.choose.pick((p.ReduceMax(axes), p.ReduceMin(axes))), x)


def product(g: ProgramBuilder) -> None:
    x = g.fixed(1)
    x = g.one(p.Cosh(), g.one(p.Tanh(), x, magnitude=1.0), magnitude=1.6)
    axis = g.choose.below(len(x.type.shape))
    if g.choose.chance(40):
        g.squashed(g.one(p.CumProd(axis, g.choose.chance(40)), x, magnitude=40.0))
    else:
        g.squashed(g.one(p.ReduceProd(_axes(g, x)), x, magnitude=40.0))


def cumulative(g: ProgramBuilder) -> None:
    x = g.operand(1)
    axis = g.choose.below(len(x.type.shape))
    magnitude = g.magnitude(x) * max(x.type.shape[axis], 1)
    prim = p.CumSum(axis, g.choose.chance(40))
    g.squashed(g.one(prim, x, magnitude=magnitude))


def cumulative_extremum(g: ProgramBuilder) -> None:
    x = numbers(g, 1)
    axis, reverse = g.choose.below(len(x.type.shape)), g.choose.chance(40)
    g.one(g.choose.pick((p.CumMax(axis, reverse), p.CumMin(axis, reverse))), x)


def of_booleans(g: ProgramBuilder) -> None:
    x = g.maybe(lambda v: v.type.dtype.kind == "b" and len(v.type.shape) > 0)
    if x is None:
        y = g.fixed(1)
        x = g.one(p.Gt(), y, g.threshold(y.type.dtype))
    axes = _axes(g, x)
    g.one(g.choose.pick((p.ReduceAnd(axes), p.ReduceOr(axes))), x)


STEPS: Final = Steps(
    linear=((2, sum_), (1, cumulative)),
    nonlinear=((2, extremum), (1, product), (1, cumulative_extremum), (1, of_booleans)),
)
