"""Parts of the steps that append equations with subjaxprs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.dtypes import is_float, is_inexact_dtype
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Lit, Var
from effax.ir.types import ArrayType, Type
from effax.testing.generate import refs
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.step import Generate

OF_REFS = 1
"""The theme of programs that use references often."""


def arguments(
    g: ProgramBuilder, most: int, accept: Callable[[Var], bool] = lambda v: True
) -> list[Var]:
    """Return some arrays in scope; one may occur twice."""
    found = [v for v in g.arrays if accept(v)]
    args: list[Var] = []
    for _ in range(g.choose.below(most + 1) if found else 0):
        others = [v for v in found if v not in args]
        args.append(g.choose.pick(others if others and not g.choose.chance(20) else found))
    return args


def references(g: ProgramBuilder, accept: Callable[[Var], bool] = lambda v: True) -> list[Var]:
    """Return some references in scope, each once."""
    if g.features.refs and not g.refs and g.choose.chance(40):
        refs.new(g)
    return g.choose.subset([r for r in g.refs if accept(r)][:3], 75)


def inside(
    g: ProgramBuilder, types: Sequence[Type], ins: Sequence[Var | None], parts: bool = False
) -> ProgramBuilder:
    """Return the builder of a subjaxpr on arguments of these types, linear as ``ins`` are.

    With ``parts``, devices may take different branches, so it has no collectives.
    """
    linear = [v is not None and g.is_linear(v) for v in ins]
    inner = ProgramBuilder(g.choose, g.features, types, linear, outer=g)
    inner.axes = () if parts else g.axes
    if inner.refs:
        inner.theme = OF_REFS
        inner.sums = {
            w.id for v, w in zip(ins, inner.b.binders, strict=True) if v and v.id in g.sums
        }
    return inner


def fill(g: ProgramBuilder, generate: Generate, most: int) -> None:
    """Generate a subjaxpr, and access the references among its inputs."""
    generate(g, most)
    if any(r in g.refs for r in g.b.binders) and g.choose.chance(50):
        g.choose.pick((refs.addupdate, refs.swap))(g)
    refs.consume_rest(g)


def result(g: ProgramBuilder, type_: ArrayType, linear: bool) -> Atom:
    """Return a result of this type, the most recent one mostly, of moderate magnitude."""
    if not (type_.shape or type_.weak or linear) and g.choose.chance(12):
        return g.literal(type_.dtype)
    recent = [v for v in g.arrays if v.type is type_ and g.is_linear(v) == linear]
    found = recent[-1] if recent and g.choose.chance(70) else g.value(type_, linear)
    if isinstance(found, Lit) or not is_inexact_dtype(type_.dtype) or g.magnitude(found) <= 4:
        return found
    if linear or not is_float(type_.dtype):
        factor = lit(1 / g.magnitude(found), type_.strong())
        return g.one(p.Mul(), found, factor, magnitude=1.0)
    return g.one(p.Tanh(), found, magnitude=1.0)


def results(g: ProgramBuilder, most: int, max_elements: int = MAX_ELEMENTS) -> list[Var]:
    """Return some values of the program, its leaves first."""
    small = [v for v in g.arrays if prod(v.type.shape) <= max_elements]
    leaves = {v.id for v in g.leaves()}
    last = [v for v in reversed(small) if v.id in leaves][:most]
    if last:
        return last
    return [g.choose.pick(small)] if small else []


def call(
    g: ProgramBuilder, prim: Primitive, ins: Sequence[Atom], linear: Sequence[bool]
) -> tuple[Var, ...]:
    """Append an equation, and record which of its results are linear."""
    outs = g.emit(prim, *ins, magnitude=4.0)
    for v, flag in zip(outs, linear, strict=True):
        (g.linear.add if flag else g.linear.discard)(v.id)
    return outs


def carried(g: ProgramBuilder, accept: Callable[[Var], bool] = lambda v: True) -> list[Atom]:
    """Return the initial carries of a loop: arrays, and sometimes a literal."""
    found: list[Atom] = [*arguments(g, 2, accept)]
    if g.choose.chance(15):
        found.append(g.literal(g.choose.pick((*g.features.floats, g.features.ints[0]))))
    return found


def variables(ins: Sequence[Atom]) -> list[Var | None]:
    """Return the arguments with None for literals."""
    return [a if isinstance(a, Var) else None for a in ins]


def array_of(v: Atom) -> ArrayType:
    """Return the type of an array."""
    assert isinstance(v.type, ArrayType)
    return v.type
