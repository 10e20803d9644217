"""Laws of named axes: collectives under ``vmap``, and ``shard_map``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from effax.ir.axes import Axis
from effax.ir.build import Builder, lit
from effax.ir.dtypes import as_dtype, is_float
from effax.ir.eval.spmd import Devices, evaluate_spmd
from effax.ir.partition import names_in
from effax.ir.primitive import Value
from effax.ir.prims import Add, ConvertElementType, Psum, ReduceSum, ShardMap, Sin
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, RefType, Type, array_type
from effax.testing.generate.features import MESHES, NUMERIC, SMOOTH, SMOOTH_MESHES
from effax.testing.generate.values import (
    Outcome,
    check_all,
    check_outcomes,
    contents_of,
    random_inputs,
    run,
)
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.transpose import full_specs
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse
from effax.transforms.rules.shard.expand import expanded
from effax.transforms.spmd.pvary_insertion import insert_pvary
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import Vmapped, vmap


def bound(jaxpr: Jaxpr, axis: Axis, axes: tuple[int | None, ...], rules: RuleSet) -> Vmapped:
    """The program batched over lanes that have the axis's name."""
    return unwrap(vmap(jaxpr, axis.size, axes, rules=rules, axis_name=axis.name))


def _axes(jaxpr: Jaxpr, seed: int) -> tuple[int | None, ...]:
    """Where lanes are: in front, but some arrays are the same for all."""
    rng = np.random.default_rng([seed, 5])
    return tuple(
        None if seed and not isinstance(t, RefType) and rng.integers(0, 4) == 0 else 0
        for t in jaxpr.in_types
    )


@law(about=About.OPEN, features=NUMERIC)
def vmap_evaluates_collectives(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """vmap(f, axis_name)(xs) = f of each lane in step, values exchanged along the axis."""
    passes = passes or Passes()
    axes = _axes(jaxpr, seed)
    types = [
        t if at is None else batched_type(t, axis.size)
        for t, at in zip(jaxpr.in_types, axes, strict=True)
    ]
    inputs = random_inputs(types, seed)
    held = [np.array(x) for x in inputs]
    lanes = [
        [x if at is None else _element(x, i) for x, at in zip(held, axes, strict=True)]
        for i in range(axis.size)
    ]
    given = evaluate_spmd(jaxpr, Devices((axis,)), lanes)
    outs = [np.stack([own[j] for own in given]) for j in range(len(jaxpr.outs))]
    expected = Outcome(outs, contents_of(jaxpr.in_types, held))
    check_outcomes(expected, run(bound(jaxpr, axis, axes, passes.rules).jaxpr, inputs))


def _element(x: Value, i: int) -> Value:
    """A view of an element, an array also where it is a scalar."""
    return x[i : i + 1].reshape(x.shape[1:])


@law(about=About.OPEN, features=SMOOTH)
def collectives_commute_with_jvp(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """jvp(vmap(f, axis_name)) = vmap(jvp(f), axis_name)."""
    passes = passes or Passes()
    axes = tuple(0 for _ in jaxpr.binders)
    mask = differentiated(jaxpr.in_types, seed)
    whole = bound(jaxpr, axis, axes, passes.rules).jaxpr
    first = passes.jvp(whole, mask).jaxpr
    of_lane = passes.jvp(jaxpr, mask).jaxpr
    second = bound(of_lane, axis, tuple(0 for _ in of_lane.binders), passes.rules).jaxpr
    if first.in_types != second.in_types or first.out_types != second.out_types:
        return  # One of the two knows that a tangent is zero.
    tangents = random_tangents(whole.in_types, mask, seed)
    given = [*random_inputs(whole.in_types, seed), *(t for t in tangents if t is not None)]
    check_outcomes(run(second, given), run(first, given))


@law(about=About.OPEN_LINEAR, features=NUMERIC)
def collectives_commute_with_transpose(
    jaxpr: Jaxpr, linear: Mask, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """transpose(vmap(f, axis_name)) = vmap(transpose(f), axis_name)."""
    passes = passes or Passes()
    ct_specs = full_specs(jaxpr, linear)
    axes = tuple(0 for _ in jaxpr.binders)
    first = passes.transpose(bound(jaxpr, axis, axes, passes.rules).jaxpr, ct_specs)
    other = passes.transpose(jaxpr, ct_specs)
    lanes = tuple(0 for _ in other.jaxpr.binders)
    second = bound(other.jaxpr, axis, lanes, passes.rules).jaxpr
    assert first.jaxpr.in_types == second.in_types
    inputs = random_inputs(first.jaxpr.in_types, seed)
    found, expected = run(first.jaxpr, inputs), run(second, inputs)
    check_all("final cotangent of reference", expected.contents, found.contents)
    mine, theirs = iter(found.outs), iter(expected.outs)
    values = [
        v.type for v, w in zip(jaxpr.binders, ct_specs, strict=True) if isinstance(w, GradValue)
    ]
    for type_, has, had in zip(values, first.nonzero, other.nonzero, strict=True):
        zero = np.zeros((axis.size, *type_.shape), type_.dtype)
        check_all("cotangent", [next(theirs) if had else zero], [next(mine) if has else zero])


@law(features=MESHES)
def shard_map_is_vmap(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """shard_map(f) on devices in step = f with the axes of the mesh as lanes."""
    passes = passes or Passes()
    for eqn in jaxpr.eqns:
        if not isinstance(eqn.prim, ShardMap):
            continue
        types = tuple([a.type for a in eqn.ins])
        made = expanded(eqn.prim, types, passes.rules)
        inputs = random_inputs(types, seed)
        held = [np.array(x) for x in inputs]
        outs = [np.array(x) for x in eqn.prim.evaluate(*held)]
        check_outcomes(Outcome(outs, contents_of(types, held)), run(made, inputs))
        unchecked = replace(eqn.prim, check_vma=False)
        assert unchecked.typing(*types) == eqn.prim.typing(*types)


@law(features=SMOOTH_MESHES)
def shard_map_commutes_with_grad(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """shard_map(grad(f)) = grad(shard_map(f)), for a loss that all devices share."""
    passes = passes or Passes()
    for eqn in jaxpr.eqns:
        types = tuple([a.type for a in eqn.ins])
        mask = tuple([isinstance(t, ArrayType) and is_float(t.dtype) for t in types])
        if isinstance(eqn.prim, ShardMap) and any(mask) and not eqn.prim.references():
            loss = _loss(eqn.prim)
            _compare_gradients(loss, types, mask, seed, passes)


def _loss(prim: ShardMap) -> ShardMap:
    """The sum of the sines of all results of floats, over all devices."""
    b = Builder(prim.jaxpr.in_types)
    outs = [a for a in b.inline_jaxpr(prim.jaxpr, b.binders) if is_float(a.type.dtype)]
    total: Atom = lit(0.0, array_type((), "float64"))
    for x in outs:
        part = b(Sin(), b(ConvertElementType(as_dtype("float64")), x))
        total = b(Add(), total, b(ReduceSum(tuple(range(len(x.type.shape)))), part))
    for axis in prim.mesh:
        total = b(Psum(axis), total)
    return replace(prim, jaxpr=b.finish([total]), out_specs=((),))


def _compare_gradients(
    loss: ShardMap, types: Sequence[Type], mask: Mask, seed: int, passes: Passes
) -> None:
    b = Builder(types)
    outside = unwrap(reverse(b.finish(b.emit(loss, b.binders)), mask, rules=passes.rules))
    differs = tuple([frozenset(names_in(spec)) for spec in loss.in_specs])
    told = insert_pvary(loss.jaxpr, differs, loss.mesh)
    local = unwrap(reverse(told, mask, rules=passes.rules))
    marked = [spec for spec, has in zip(loss.in_specs, mask, strict=True) if has]
    given = [spec for spec, has in zip(marked, local.nonzero, strict=True) if has]
    inside = ShardMap(local.jaxpr, loss.mesh, (*loss.in_specs, ()), ((), *given))
    inputs = [*random_inputs(types, seed), np.asarray(1.0)]
    inside.typing(*types, array_type((), "float64"))
    expected, found = run(outside.jaxpr, inputs).outs, list(inside.evaluate(*inputs))
    check_all("loss", expected[:1], found[:1])
    theirs, mine = iter(expected[1:]), iter(found[1:])
    wanted = [t for t, has in zip(types, mask, strict=True) if has]
    for t, has, had in zip(wanted, local.nonzero, outside.nonzero, strict=True):
        zero = np.zeros(t.shape, t.dtype)
        check_all("gradient", [next(theirs) if had else zero], [next(mine) if has else zero])
