"""``shard_map``: a program on each device of a mesh; constraints on the placement of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from effax.effects import Rule, Write
from effax.ir.analysis.variance import variance
from effax.ir.axes import Axes
from effax.ir.errors import IllTyped, RefError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.memo import memoize
from effax.ir.partition import Spec, global_type, join_parts, local_type, names_in, part, spec_text
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.common.operands import arrays
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results
from effax.ir.regions.forms import call_region
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type
from effax.ir.work import NO_WORK, Work
from effax.lazy.dataclasses import dataclass

__all__ = [
    "ShardMap",
    "ShardingConstraint",
]

Grid = tuple[Axes, tuple[int, ...]]
"""The names and sizes of all axes of a mesh, and the numbers of its devices, in row-major order."""


@dataclass(frozen=True, slots=True)
class ShardMap(Primitive):
    """``jaxpr`` on every device of ``mesh``, with arguments divided and results joined.

    ``mesh`` has the names and sizes of its axes; the choice of devices does not change the results.
    Along axes that an ``out_specs`` entry does not name, the result must be replicated: with
    ``check_vma`` the type ensures it, without it the first device's result is taken.

    ``grid`` has the devices that run it, and further axes over which values inside may be divided;
    without it, one device runs them all.
    """

    jaxpr: Jaxpr
    mesh: Axes
    in_specs: tuple[Spec, ...]
    out_specs: tuple[Spec, ...]
    check_vma: bool = True
    grid: Grid | None = None
    name: ClassVar[str] = "shard_map"

    def typing(self, *ins: Type) -> Typing:
        self._check_mesh()
        body = self.jaxpr
        if (len(self.in_specs), len(self.out_specs)) != (len(ins), len(body.outs)):
            raise IllTyped(
                "shard_map needs one spec per argument and one per result",
                expected=f"{len(ins)} and {len(body.outs)}",
                found=f"{len(self.in_specs)} and {len(self.out_specs)}",
            )
        local = [
            local_type(t, spec, self.mesh, body.name_of(i))
            for i, (t, spec) in enumerate(zip(ins, self.in_specs, strict=True))
        ]
        check_call(self, "the function", body, local)
        check_no_ref_results(self, "the function", body)
        self._check_writes(ins)
        if self.check_vma:
            self._check_same()
        outs = [
            global_type(t, spec, self.mesh, f"result {i}")
            for i, (t, spec) in enumerate(zip(body.out_types, self.out_specs, strict=True))
        ]
        return Typing(tuple(outs), body.effects)

    def _check_mesh(self) -> None:
        sizes = {axis.name: axis.size for axis in self.mesh}
        if len(sizes) < len(self.mesh) or any(n < 1 for n in sizes.values()):
            raise IllTyped(
                "shard_map: a mesh has axes of different names, of at least one device each",
                found=", ".join(map(str, self.mesh)),
            )
        for axis in self.jaxpr.free_axes:
            if sizes.get(axis.name, axis.size) != axis.size:
                raise IllTyped(
                    f"shard_map: the function uses the axis '{axis.name}' at another size",
                    expected=str(sizes[axis.name]),
                    found=str(axis.size),
                )

    def _check_writes(self, ins: Sequence[Type]) -> None:
        """Raise RefError if devices that share a reference write to it."""
        for effect in self.jaxpr.effects:
            if isinstance(effect, Write) and self.unnamed(self.in_specs[effect.ref]):
                raise shared_write(self, effect.ref, str(ins[effect.ref]))

    def _check_same(self) -> None:
        """Raise IllTyped if a result may differ along an axis that its spec does not name."""
        ins = tuple([frozenset(names_in(spec)) for spec in self.in_specs])
        found = variance(self.jaxpr, ins, self.references())
        mesh = {axis.name for axis in self.mesh}
        for i, (names, spec) in enumerate(zip(found.outs, self.out_specs, strict=True)):
            extra = sorted((names & mesh) - set(names_in(spec)))
            if extra:
                raise not_the_same(f"result {i}", spec, extra)

    def references(self) -> frozenset[int]:
        """Return the positions of the arguments that are references."""
        binders = enumerate(self.jaxpr.binders)
        return frozenset(i for i, v in binders if isinstance(v.type, RefType))

    def unnamed(self, spec: Spec) -> Axes:
        """Return the axes of the mesh that a spec does not name."""
        named = names_in(spec)
        return tuple([axis for axis in self.mesh if axis.name not in named])

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return self.evaluate_spmd(Devices(()), [ins])[0]

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        """Evaluate on each device's own mesh, if there are several devices already."""
        count = Devices(self.mesh).total
        args = [
            [part(x, spec, self.mesh, d) for x, spec in zip(own, self.in_specs, strict=True)]
            for own in ins
            for d in range(count)
        ]
        given = evaluate_spmd(self.jaxpr, devices.each_with(self.mesh), args)
        return [
            [
                join_parts([outs[j] for outs in given[i * count :][:count]], spec, self.mesh)
                for j, spec in enumerate(self.out_specs)
            ]
            for i in range(len(ins))
        ]

    def free_axes(self) -> Axes:
        bound = {axis.name for axis in self.mesh}
        return tuple([axis for axis in self.jaxpr.free_axes if axis.name not in bound])

    def bound_axes(self) -> Axes:
        return self.mesh

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> ShardMap:
        return replace(self, jaxpr=jaxprs[0])

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> ShardMap:
        in_specs, out_specs = (
            tuple([spec for spec, keep in zip(specs, kept, strict=True) if keep])
            for specs, kept in ((self.in_specs, ins), (self.out_specs, outs))
        )
        return replace(self, jaxpr=jaxprs[0], in_specs=in_specs, out_specs=out_specs)

    def regions(self) -> tuple[Region, ...]:
        return (call_region(self.jaxpr),)


@dataclass(frozen=True, slots=True)
class ShardingConstraint(Primitive):
    """The identity; on the devices of ``grid``, the result is divided as ``spec`` says.

    The compiler chooses the division of the dimensions in ``free``.
    """

    spec: Spec
    grid: Grid
    free: tuple[int, ...] = ()
    name: ClassVar[str] = "sharding_constraint"
    is_view: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        local_type(x, self.spec, self.grid[0], "the operand", f"{self.name}: ")
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return ins

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return NO_WORK


def grids_in(jaxpr: Jaxpr) -> tuple[Grid, ...]:
    """Return the meshes of devices that a program names, in order, each once."""
    found: dict[Grid, None] = {}
    for eqn in jaxpr.eqns:
        prim = eqn.prim
        if isinstance(prim, ShardMap | ShardingConstraint) and prim.grid is not None:
            found.setdefault(prim.grid)
        for inner in prim.subjaxprs():
            found.update(dict.fromkeys(_grids_in(inner)))
    return tuple(found)


_grids_in = memoize(maxsize=1024)(grids_in)


def not_the_same(what: str, spec: Spec, axes: Sequence[str]) -> IllTyped:
    """Return the error for a result that may differ along an axis that its spec does not name."""
    shown = " and ".join([repr(name) for name in axes])
    return IllTyped(
        f"shard_map: {what} may differ between devices along {shown}, which its spec does not name",
        expected=f"a result that is the same along {shown}, as {spec_text(spec)} says",
        found="one that depends on divided arguments, or on `axis_index`, along it",
        remedy="name the axis in out_specs, or make it the same: `psum`, `pmean`, `all_gather`; "
        "`check_vma=False` takes the first device's",
    )


def shared_write(prim: ShardMap, position: int, found: str) -> RefError:
    """Return the error for a write to a reference that devices share."""
    return RefError.against(
        Rule.SHARED_WRITE,
        f"shard_map: {prim.jaxpr.name_of(position)} is one reference for several devices, and is "
        "written: it is not clear whose value remains",
        expected="reads, and additions, which are summed over the devices",
        found=found,
    )
