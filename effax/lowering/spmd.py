"""Lowering for several devices: ``shard_map`` and constraints as Shardy's operations.

The body of ``shard_map`` is a manual computation on local types. In it, a collective names the
devices by their positions in the mesh, so collectives are bound to the mesh first
(:class:`OnDevices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import partial
from math import prod
from typing import ClassVar, Final, cast

import numpy as np

from effax.ir.analysis.dataflow import Visit, analyze, walk_facts
from effax.ir.analysis.variance import DIFFERS, SAME, Names
from effax.ir.axes import Axes, Axis
from effax.ir.build import typing_of
from effax.ir.dtypes import INT32, UINT32
from effax.ir.edit.operations import with_prim
from effax.ir.errors import IllTyped
from effax.ir.memo import memoize
from effax.ir.partition import Spec, names_in
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import Cond, Jit, ShardingConstraint, ShardMap, While
from effax.ir.prims import collective as c
from effax.ir.prims.collective import exchanges
from effax.ir.prims.shard import grids_in
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.text.printer import eqn_str
from effax.ir.types import ArrayType, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import ops
from effax.lowering.layout import Meshes, MeshPlace
from effax.lowering.mlir_text import tensor
from effax.lowering.rules.reduce import operation
from effax.lowering.rules.shard import batched
from effax.lowering.tokens import OnEachDevice, TokenCall, has_token_calls
from effax.lowering.writer import LoweringRules, Val, Writer


@dataclass(frozen=True, slots=True)
class OnDevices(Primitive):
    """A collective along an axis of a mesh of devices, where the axes ``manual`` are bound."""

    prim: c.Collective
    mesh: Axes
    manual: Axes
    name: ClassVar[str] = "on_devices"

    def typing(self, *ins: Type) -> Typing:
        return typing_of(self.prim, ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return self.prim.evaluate(*ins)

    def groups(self) -> np.ndarray:
        """Return the positions of the devices of each group, in its order; -1 after a short one."""
        at = [axis.name for axis in self.mesh].index(self.prim.axis.name)
        positions = np.arange(prod([axis.size for axis in self.mesh]))
        grid = np.moveaxis(positions.reshape([axis.size for axis in self.mesh]), at, -1)
        along, own = grid.reshape(-1, self.prim.axis.size), self.prim.groups
        if own is None:
            return along
        places = np.full((len(own), self.prim.size), -1)
        for i, group in enumerate(own):
            places[i, : len(group)] = group
        return np.where(places < 0, -1, along[:, places]).reshape(-1, self.prim.size)


@memoize(maxsize=1024)
def bound_to(jaxpr: Jaxpr, manual: Axes, mesh: Axes) -> Jaxpr:
    """Return a program whose collectives along the axes ``manual`` are those of a mesh."""
    names = {axis.name for axis in manual}

    def bound(eqn: Eqn) -> Primitive:
        prim = eqn.prim
        if isinstance(prim, TokenCall):
            return OnEachDevice(prim.prim)
        if isinstance(prim, c.Collective):
            return OnDevices(prim, mesh, manual) if prim.axis.name in names else prim
        if isinstance(prim, ShardMap | ShardingConstraint) and prim.grid is not None:
            _check_inside(eqn, names, mesh)
        if isinstance(prim, ShardingConstraint):
            # Where all axes are manual, each device has its own value.
            every = len(names) == len(mesh)
            return OnDevices(c.Pvary(manual[0]), mesh, manual) if every else prim
        if isinstance(prim, ShardMap) and prim.grid is not None:
            check_reached(prim)
            inside = bound_to(prim.jaxpr, (*manual, *prim.mesh), mesh)
            return replace(prim, jaxpr=inside, check_vma=False)
        if isinstance(prim, ShardMap):
            # Batching knows the collectives along outer axes, not those of devices.
            types = cast("tuple[ArrayType, ...]", tuple([a.type for a in eqn.ins]))
            prim = Jit(batched(prim, types), prim.name)
        inner = prim.subjaxprs()
        if not any(
            grids_in(j) or has_token_calls(j) or any(a.name in names for a in j.free_axes)
            for j in inner
        ):
            return prim
        return prim.with_subjaxprs([bound_to(j, manual, mesh) for j in inner])

    eqns = [with_prim(eqn, bound(eqn)) for eqn in jaxpr.eqns]
    return Jaxpr(jaxpr.binders, eqns, jaxpr.outs)


def _check_inside(eqn: Eqn, manual: Set[str], mesh: Axes) -> None:
    """Raise IllTyped for a placement that has no sense in a manual computation: XLA would abort."""
    prim = cast("ShardMap | ShardingConstraint", eqn.prim)
    assert prim.grid is not None, "it is on devices"
    specs = (prim.spec,) if isinstance(prim, ShardingConstraint) else prim.in_specs + prim.out_specs
    taken = sorted({name for spec in specs for name in names_in(spec)} & set(manual))
    if not taken and prim.grid[0] == mesh:
        return
    raise IllTyped(
        f"{prim.name} inside of shard_map "
        + (f"names the axis '{taken[0]}', along which" if taken else "is over another mesh, where")
        + " the function is for one device",
        expected="axes that the enclosing `shard_map` leaves to the compiler (`axis_names`)",
        found=eqn_str(eqn),
        remedy="leave it out, or place the values outside",
    ).at(eqn_str(eqn), None if eqn.source is None else str(eqn.source))


@memoize(maxsize=1024)
def check_reached(prim: ShardMap) -> None:
    """Raise IllTyped for a collective that only a part of its devices would reach.

    It would wait for the others without end.
    """
    ins = tuple([frozenset(names_in(spec)) for spec in prim.in_specs])
    for visit in walk_facts(DIFFERS, prim.jaxpr, ins, prim.references()):
        eqn = visit.place.eqn
        for name in _varies(eqn.prim, visit) if eqn.prim.subjaxprs() else ():
            if any(exchanges(inner, name) for inner in eqn.prim.subjaxprs()):
                raise IllTyped(
                    f"a collective along '{name}' is in a {eqn.prim.name} whose predicate differs "
                    f"along '{name}': only a part of the devices would reach it",
                    expected=f"a predicate that is the same along '{name}'",
                    found=eqn_str(eqn),
                    remedy="compute the collective outside, and select: `jnp.where`; or make the "
                    "predicate the same: `psum`, `pmax`",
                ).at(eqn_str(eqn), None if eqn.source is None else str(eqn.source))


def _varies(prim: Primitive, visit: Visit[Names]) -> Names:
    """Return the axes along which the predicate of a branch or a loop differs."""
    if isinstance(prim, Cond):
        return visit.ins[0]
    if isinstance(prim, While):
        given = (*visit.ins[: prim.n_consts], *visit.outs)
        return analyze(DIFFERS, prim.cond, given).outs[0]
    return SAME


def constraint(
    meshes: Meshes, w: Writer, prim: ShardingConstraint, ins: Sequence[Val]
) -> Sequence[Val]:
    """Write a constraint."""
    (x,) = ins
    place = meshes.sharding(MeshPlace(prim.grid[0], prim.spec, prim.free), len(x.shape))
    return w.op(f"sdy.sharding_constraint {x} {place} : {x.text}", x.type)


def manual(meshes: Meshes, w: Writer, prim: ShardMap, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a manual computation; without devices, the program of all shards."""
    if prim.grid is None:
        return w.call(batched(prim, tuple([x.type for x in ins])), ins, prim.name)
    check_reached(prim)
    mesh = prim.grid[0]
    body = bound_to(prim.jaxpr, prim.mesh, mesh)
    local = cast("tuple[ArrayType, ...]", body.in_types)
    types = typing_of(prim, tuple([x.type for x in ins])).outs
    outs = cast("tuple[ArrayType, ...]", types)
    if not outs:
        return ()

    partial_axes = len(prim.mesh) < len(mesh)

    def shardings(specs: Sequence[Spec], of: Sequence[ArrayType]) -> str:
        """Return the divisions over manual axes; the compiler chooses those over others."""
        shown: list[str] = []
        for spec, type_ in zip(specs, of, strict=True):
            free = range(len(type_.shape)) if partial_axes else ()
            place = MeshPlace(mesh, spec, tuple(free))
            shown.append(meshes.sharding(place, len(type_.shape)))
        return ", ".join(shown)

    # XLA replaces an empty operand by a constant, and then misses that it is divided.
    kept = [i for i, t in enumerate(local) if t.size]

    def inside(*xs: Val) -> Sequence[Val]:
        given = dict(zip(kept, xs, strict=True))
        every = [given[i] if i in given else w.constant(0, t) for i, t in enumerate(local)]
        return w.call(body, every, prim.name)

    args, lines = w.block([local[i] for i in kept], inside, False, "sdy.return")
    axes = ", ".join([f'"{axis.name}"' for axis in prim.mesh])
    ins, specs = [ins[i] for i in kept], [prim.in_specs[i] for i in kept]
    head = (
        f"sdy.manual_computation({', '.join([x.name for x in ins])}) "
        f"in_shardings=[{shardings(specs, [x.type for x in ins])}] "
        f"out_shardings=[{shardings(prim.out_specs, outs)}] manual_axes={{{axes}}} ({args}) {{"
    )
    end = f"}} : ({', '.join([x.text for x in ins])}) -> ({', '.join(map(tensor, outs))})"
    text = "\n".join([head, *lines, end])
    return w.op(text, *outs)


def collective(meshes: Meshes, w: Writer, prim: OnDevices, ins: Sequence[Val]) -> Sequence[Val]:
    """Write a collective between devices."""
    if isinstance(prim.prim, c.AxisIndex):
        return [_index(meshes, w, prim)]
    return _LOWERINGS[type(prim.prim)](w, prim, *ins)


def device_rules(rules: LoweringRules, meshes: Meshes) -> LoweringRules:
    """Return the rules for several devices, which add the meshes that they name."""
    return (
        rules.extend(ShardingConstraint, partial(constraint, meshes))
        .extend(ShardMap, partial(manual, meshes))
        .extend(OnDevices, partial(collective, meshes))
    )


_CHANNEL: Final = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_GLOBAL: Final = ("all_reduce", "all_gather", "reduce_scatter")


def _exchange(
    w: Writer, name: str, prim: OnDevices, x: Val, out: ArrayType, more: str = "", region: str = ""
) -> Val:
    groups = prim.groups()
    ids = ", use_global_device_ids" if name in _GLOBAL else ""
    shape = "x".join(map(str, groups.shape))
    options = f"{more}{_CHANNEL}, replica_groups = dense<{groups.tolist()}> : tensor<{shape}xi64>"
    body = f" ({region})" if region else ""
    return w.op1(
        f'"stablehlo.{name}"({x}) <{{{options}{ids}}}>{body} : ({x.text}) -> {tensor(out)}', out
    )


def _combination(w: Writer, name: str, type_: ArrayType) -> str:
    one = type_.update(shape=(), weak=False)

    def combine(x: Val, y: Val) -> Sequence[Val]:
        return [w.op1(f"stablehlo.{operation(name, one.dtype)} {x}, {y} : {x.text}", one)]

    return w.region([one, one], combine)


def _reduce(name: str, w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    region = _combination(w, name, x.type)
    return [_exchange(w, "all_reduce", prim, x, x.type, region=region)]


def _gather(w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    at = cast(c.Gathering, prim.prim).dimension
    one = ops.reshape(w, x, (*x.shape[:at], 1, *x.shape[at:]))
    out = one.type.update(shape=(*x.shape[:at], prim.prim.size, *x.shape[at:]))
    return [_exchange(w, "all_gather", prim, one, out, f"all_gather_dim = {at} : i64, ")]


def _scatter(w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    at = cast(c.ReduceScatter, prim.prim).dimension
    out = x.type.update(shape=(*x.shape[:at], 1, *x.shape[at + 1 :]))
    region = _combination(w, "add", x.type)
    dimension = f"scatter_dimension = {at} : i64, "
    part = _exchange(w, "reduce_scatter", prim, x, out, dimension, region)
    return [ops.reshape(w, part, (*x.shape[:at], *x.shape[at + 1 :]))]


def _to_all(w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    """Exchange the dimension in place, then move it."""
    own = cast(c.AllToAll, prim.prim)
    split = f"split_dimension = {own.split} : i64, concat_dimension = {own.split} : i64, "
    count = f"split_count = {own.size} : i64, "
    moved = _exchange(w, "all_to_all", prim, x, x.type, split + count)
    order = [i for i in range(len(x.shape)) if i != own.split]
    order.insert(own.concat, own.split)
    return [ops.transpose(w, moved, order)]


def _permute(w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    own = cast(c.PPermute, prim.prim)
    pairs = [[int(g[s]), int(g[d])] for g in prim.groups() for s, d in own.perm]
    text = f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>" if pairs else "dense<> : tensor<0x2xi64>"
    options = f"{_CHANNEL}, source_target_pairs = {text}"
    return [
        w.op1(
            f'"stablehlo.collective_permute"({x}) <{{{options}}}> : ({x.text}) -> {x.text}', x.type
        )
    ]


def _vary(w: Writer, prim: OnDevices, x: Val) -> Sequence[Val]:
    return [x]


def _index(meshes: Meshes, w: Writer, prim: OnDevices) -> Val:
    """Return the coordinate of the device; its position is known where all axes are manual."""
    bound = {axis.name for axis in prim.manual}
    rest = [axis.name for axis in prim.mesh if axis.name not in bound]
    if not rest:
        return _coordinate(w, prim)
    scalar = array_type((), INT32)
    _, lines = w.block([], lambda: [_coordinate(w, prim)], False, "sdy.return")
    place = meshes.sharding(MeshPlace(prim.mesh, ()), 0)
    axes = ", ".join([f'"{name}"' for name in rest])
    head = f"sdy.manual_computation() in_shardings=[] out_shardings=[{place}]"
    text = [f"{head} manual_axes={{{axes}}} () {{", *lines, f"}} : () -> {tensor(scalar)}"]
    return w.op1("\n".join(text), scalar)


def _coordinate(w: Writer, prim: OnDevices) -> Val:
    """Return the coordinate of the device, whose position is row-major in the mesh."""
    word = array_type((), UINT32)
    names = [axis.name for axis in prim.mesh]
    after: Sequence[Axis] = prim.mesh[names.index(prim.prim.axis.name) + 1 :]
    position = w.op1(f"stablehlo.partition_id : {tensor(word)}", word)
    stride = w.constant(prod([axis.size for axis in after]), word)
    row = w.op1(f"stablehlo.divide {position}, {stride} : {tensor(word)}", word)
    size = w.constant(prim.prim.axis.size, word)
    at = w.op1(f"stablehlo.remainder {row}, {size} : {tensor(word)}", word)
    return ops.convert(w, at, INT32)


_LOWERINGS: Final[dict[type[c.Collective], Callable[..., Sequence[Val]]]] = {
    c.Psum: partial(_reduce, "add"),
    c.PsumInvariant: partial(_reduce, "add"),
    c.Pmax: partial(_reduce, "maximum"),
    c.Pmin: partial(_reduce, "minimum"),
    c.AllGather: _gather,
    c.AllGatherInvariant: _gather,
    c.ReduceScatter: _scatter,
    c.AllToAll: _to_all,
    c.PPermute: _permute,
    c.Pvary: _vary,
}
