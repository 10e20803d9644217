"""Steps of ``shard_map``."""

from __future__ import annotations

from typing import Final

from effax.ir.analysis.variance import Names, variance
from effax.ir.axes import Axes, Axis
from effax.ir.partition import Spec, local_type, names_in
from effax.ir.prims import Reshape, ShardMap
from effax.ir.syntax import Var
from effax.ir.types import RefType
from effax.testing.generate import subjaxprs
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.refs import consume_rest
from effax.testing.generate.step import Generate, Steps


def shard_map(g: ProgramBuilder, generate: Generate) -> None:
    mesh = _mesh(g)
    ins = [*subjaxprs.references(g, lambda r: r.type.dtype.kind != "b"), *subjaxprs.arguments(g, 3)]
    specs = [() if isinstance(v.type, RefType) else _divided(g, v, mesh) for v in ins]
    types = [local_type(v.type, s, mesh, "an input") for v, s in zip(ins, specs, strict=True)]
    inner = subjaxprs.inside(g, types, ins)
    inner.axes = mesh
    # Devices may only add to shared references: reads would observe partial sums.
    inner.sums |= {r.id for r in inner.refs}
    generate(inner, 4)
    consume_rest(inner)
    found = subjaxprs.results(inner, 3)
    given = variance(
        inner.finish(found),
        tuple([frozenset(names_in(spec)) for spec in specs]),
        frozenset([i for i, v in enumerate(ins) if isinstance(v.type, RefType)]),
    ).outs
    pairs = [_joined(g, inner, v, own, mesh) for v, own in zip(found, given, strict=True)]
    outs = [v for v, _ in pairs]
    prim = ShardMap(inner.finish(outs), mesh, tuple(specs), tuple([s for _, s in pairs]))
    subjaxprs.call(g, prim, ins, [inner.is_linear(v) for v in outs])


def _mesh(g: ProgramBuilder) -> Axes:
    x, y = f"x{g.depth}", f"y{g.depth}"
    sizes = ((2,), (2, 2), (3,), (1, 2), (4,))
    return tuple([Axis(name, n) for name, n in zip((x, y), g.choose.pick(sizes), strict=False)])


def _divided(g: ProgramBuilder, v: Var, mesh: Axes) -> Spec:
    """Return a spec that divides the array over some axes, where its dimensions allow."""
    left = list(mesh)
    spec: list[tuple[str, ...]] = []
    for n in v.type.shape:
        names: list[str] = []
        for axis in g.choose.subset(left, 60):
            if n % axis.size == 0:
                names.append(axis.name)
                left.remove(axis)
                n //= axis.size  # noqa: PLW2901  # what is left of the dimension
        spec.append(tuple(names))
    return tuple(spec)


def _joined(
    g: ProgramBuilder, inner: ProgramBuilder, v: Var, differs: Names, mesh: Axes
) -> tuple[Var, Spec]:
    """Return a result and its spec, which names the axes along which it varies."""
    names = [a.name for a in mesh if a.name in differs or g.choose.chance(15)]
    if names and not v.type.shape:
        v = inner.one(Reshape((1,)), v)
    spec: list[tuple[str, ...]] = [() for _ in v.type.shape]
    for name in names:
        at = g.choose.below(len(spec))
        spec[at] = (*spec[at], name)
    return v, tuple(spec)


STEPS: Final = Steps(nested={"shard_map": (6, shard_map)})
