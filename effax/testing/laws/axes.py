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
    with_zeros,
)
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.transpose import full_specs
from effax.testing.laws.vmap import Axes, Batch
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse
from effax.transforms.rules.shard.expand import expanded
from effax.transforms.spmd.pvary_insertion import insert_pvary
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import vmap


def bound(jaxpr: Jaxpr, axis: Axis, rules: RuleSet, axes: Axes | None = None) -> Jaxpr:
    """Return the program batched along a named axis."""
    axes = (0,) * len(jaxpr.binders) if axes is None else axes
    return unwrap(vmap(jaxpr, axis.size, axes, rules=rules, axis_name=axis.name)).jaxpr


def _axes(jaxpr: Jaxpr, seed: int) -> Axes:
    """Return the leading axis for each input; None, unbatched, for some arrays."""
    rng = np.random.default_rng([seed, 5])
    return tuple(
        None if seed and not isinstance(t, RefType) and rng.integers(0, 4) == 0 else 0
        for t in jaxpr.in_types
    )


@law(about=About.OPEN, features=NUMERIC)
def vmap_evaluates_collectives(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """vmap(f, axis_name)(xs) = f of all elements in step, which exchange values along the axis."""
    batch = Batch.of(jaxpr, axis.size, _axes(jaxpr, seed), seed)
    copied = batch.copied()
    parts = evaluate_spmd(jaxpr, Devices((axis,)), [copied.element(i) for i in range(axis.size)])
    outs = [np.stack([own[j] for own in parts]) for j in range(len(jaxpr.outs))]
    expected = Outcome(outs, contents_of(jaxpr.in_types, copied.inputs))
    check_outcomes(expected, run(bound(jaxpr, axis, passes.rules, batch.axes), batch.inputs))


@law(about=About.OPEN, features=SMOOTH)
def collectives_commute_with_jvp(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """jvp(vmap(f, axis_name)) = vmap(jvp(f), axis_name)."""
    mask = differentiated(jaxpr.in_types, seed)
    whole = bound(jaxpr, axis, passes.rules)
    first = passes.jvp(whole, mask).jaxpr
    second = bound(passes.jvp(jaxpr, mask).jaxpr, axis, passes.rules)
    if first.in_types != second.in_types or first.out_types != second.out_types:
        return  # One of the two knows that a tangent is zero.
    tangents = random_tangents(whole.in_types, mask, seed)
    inputs = [*random_inputs(whole.in_types, seed), *(t for t in tangents if t is not None)]
    check_outcomes(run(second, inputs), run(first, inputs))


@law(about=About.OPEN_LINEAR, features=NUMERIC)
def collectives_commute_with_transpose(
    jaxpr: Jaxpr, linear: Mask, axis: Axis, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """transpose(vmap(f, axis_name)) = vmap(transpose(f), axis_name)."""
    ct_specs = full_specs(jaxpr, linear)
    first = passes.transpose(bound(jaxpr, axis, passes.rules), ct_specs)
    other = passes.transpose(jaxpr, ct_specs)
    second = bound(other.jaxpr, axis, passes.rules)
    assert first.jaxpr.in_types == second.in_types
    inputs = random_inputs(first.jaxpr.in_types, seed)
    found, expected = run(first.jaxpr, inputs), run(second, inputs)
    check_all("final cotangent of reference", expected.contents, found.contents)
    types = [
        batched_type(v.type, axis.size)
        for v, w in zip(jaxpr.binders, ct_specs, strict=True)
        if isinstance(w, GradValue)
    ]
    check_all(
        "cotangent",
        with_zeros(types, other.nonzero, expected.outs),
        with_zeros(types, first.nonzero, found.outs),
    )


@law(features=MESHES)
def shard_map_is_vmap(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """shard_map(f) on devices in step = f batched along the axes of the mesh."""
    for eqn in jaxpr.eqns:
        if not isinstance(eqn.prim, ShardMap):
            continue
        types = tuple([a.type for a in eqn.ins])
        made = expanded(eqn.prim, types, passes.rules)
        inputs = random_inputs(types, seed)
        buffers = [np.array(x) for x in inputs]
        outs = [np.array(x) for x in eqn.prim.evaluate(*buffers)]
        check_outcomes(Outcome(outs, contents_of(types, buffers)), run(made, inputs))
        unchecked = replace(eqn.prim, check_vma=False)
        assert unchecked.typing(*types) == eqn.prim.typing(*types)


@law(features=SMOOTH_MESHES)
def shard_map_commutes_with_grad(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """shard_map(grad(f)) = grad(shard_map(f)), for a loss that all devices share."""
    for eqn in jaxpr.eqns:
        types = tuple([a.type for a in eqn.ins])
        mask = tuple([isinstance(t, ArrayType) and is_float(t.dtype) for t in types])
        if isinstance(eqn.prim, ShardMap) and any(mask) and not eqn.prim.references():
            _compare_gradients(_loss(eqn.prim), types, mask, seed, passes)


def _loss(prim: ShardMap) -> ShardMap:
    """Return the sum of the sines of all floating results, over all devices."""
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
    varies = tuple([frozenset(names_in(spec)) for spec in loss.in_specs])
    inner = insert_pvary(loss.jaxpr, varies, loss.mesh)
    local = unwrap(reverse(inner, mask, rules=passes.rules))
    tracked = [spec for spec, has in zip(loss.in_specs, mask, strict=True) if has]
    specs = [spec for spec, has in zip(tracked, local.nonzero, strict=True) if has]
    inside = ShardMap(local.jaxpr, loss.mesh, (*loss.in_specs, ()), ((), *specs))
    inputs = [*random_inputs(types, seed), np.asarray(1.0)]
    inside.typing(*types, array_type((), "float64"))
    expected, found = run(outside.jaxpr, inputs).outs, list(inside.evaluate(*inputs))
    check_all("loss", expected[:1], found[:1])
    own = [t for t, has in zip(types, mask, strict=True) if has]
    check_all(
        "gradient",
        with_zeros(own, outside.nonzero, expected[1:]),
        with_zeros(own, local.nonzero, found[1:]),
    )
