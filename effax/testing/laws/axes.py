"""Laws of named axes: collectives under ``vmap``, and ``shard_map``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from effax.ir.axes import Axis
from effax.ir.lockstep import Devices, evaluate_together
from effax.ir.primitive import Value
from effax.ir.prims.shard import ShardMap
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.transpose import full_wants
from effax.testing.passes import Passes
from effax.testing.report import law
from effax.testing.values import (
    Outcome,
    check_all,
    check_outcomes,
    contents_of,
    random_inputs,
    run,
)
from effax.transforms.lanes import with_axis
from effax.transforms.rulebook import RuleBook
from effax.transforms.rules.shard.expand import expanded
from effax.transforms.run import unwrap
from effax.transforms.spread import Mask
from effax.transforms.vmap import Vmapped, vmap
from effax.transforms.wants import GradValue


def bound(jaxpr: Jaxpr, axis: Axis, axes: tuple[int | None, ...], book: RuleBook) -> Vmapped:
    """The program batched over lanes that have the axis's name."""
    return unwrap(vmap(jaxpr, axis.size, axes, book=book, axis_name=axis.name))


def _axes(jaxpr: Jaxpr, seed: int) -> tuple[int | None, ...]:
    """Where lanes are: in front, but some arrays are the same for all."""
    rng = np.random.default_rng([seed, 5])
    return tuple(
        None if seed and not isinstance(t, RefType) and rng.integers(0, 4) == 0 else 0
        for t in jaxpr.in_types
    )


@law
def vmap_does_collectives(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """vmap(f, axis_name)(xs) = f of each lane in step, values exchanged along the axis."""
    passes = passes or Passes()
    axes = _axes(jaxpr, seed)
    types = [
        t if at is None else with_axis(t, axis.size)
        for t, at in zip(jaxpr.in_types, axes, strict=True)
    ]
    inputs = random_inputs(types, seed)
    held = [np.array(x) for x in inputs]
    lanes = [
        [x if at is None else _element(x, i) for x, at in zip(held, axes, strict=True)]
        for i in range(axis.size)
    ]
    given = evaluate_together(jaxpr, Devices((axis,)), lanes)
    outs = [np.stack([own[j] for own in given]) for j in range(len(jaxpr.outs))]
    expected = Outcome(outs, contents_of(jaxpr.in_types, held))
    check_outcomes(expected, run(bound(jaxpr, axis, axes, passes.book).jaxpr, inputs))


def _element(x: Value, i: int) -> Value:
    """A view of an element, an array also where it is a scalar."""
    return x[i : i + 1].reshape(x.shape[1:])


@law
def collectives_commute_with_jvp(
    jaxpr: Jaxpr, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """jvp(vmap(f, axis_name)) = vmap(jvp(f), axis_name)."""
    passes = passes or Passes()
    axes = tuple(0 for _ in jaxpr.binders)
    mask = differentiated(jaxpr.in_types, seed)
    whole = bound(jaxpr, axis, axes, passes.book).jaxpr
    first = passes.jvp(whole, mask).jaxpr
    of_lane = passes.jvp(jaxpr, mask).jaxpr
    second = bound(of_lane, axis, tuple(0 for _ in of_lane.binders), passes.book).jaxpr
    if first.in_types != second.in_types or first.out_types != second.out_types:
        return  # One of the two knows that a tangent is zero.
    tangents = random_tangents(whole.in_types, mask, seed)
    given = [*random_inputs(whole.in_types, seed), *(t for t in tangents if t is not None)]
    check_outcomes(run(second, given), run(first, given))


@law
def collectives_commute_with_transpose(
    jaxpr: Jaxpr, linear: Mask, axis: Axis, seed: int = 0, passes: Passes | None = None
) -> None:
    """transpose(vmap(f, axis_name)) = vmap(transpose(f), axis_name)."""
    passes = passes or Passes()
    wants = full_wants(jaxpr, linear)
    axes = tuple(0 for _ in jaxpr.binders)
    first = passes.transpose(bound(jaxpr, axis, axes, passes.book).jaxpr, wants)
    other = passes.transpose(jaxpr, wants)
    lanes = tuple(0 for _ in other.jaxpr.binders)
    second = bound(other.jaxpr, axis, lanes, passes.book).jaxpr
    assert first.jaxpr.in_types == second.in_types
    inputs = random_inputs(first.jaxpr.in_types, seed)
    found, expected = run(first.jaxpr, inputs), run(second, inputs)
    check_all("final cotangent of reference", expected.contents, found.contents)
    mine, theirs = iter(found.outs), iter(expected.outs)
    values = [v.type for v, w in zip(jaxpr.binders, wants, strict=True) if isinstance(w, GradValue)]
    for type_, has, had in zip(values, first.nonzero, other.nonzero, strict=True):
        zero = np.zeros((axis.size, *type_.shape), type_.dtype)
        check_all("cotangent", [next(theirs) if had else zero], [next(mine) if has else zero])


@law
def shard_map_is_lanes(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """shard_map(f) on devices in step = f with the axes of the mesh as lanes."""
    passes = passes or Passes()
    for eqn in jaxpr.eqns:
        if not isinstance(eqn.prim, ShardMap):
            continue
        types = tuple([a.type for a in eqn.ins])
        made = expanded(eqn.prim, types, passes.book)
        inputs = random_inputs(types, seed)
        held = [np.array(x) for x in inputs]
        outs = [np.array(x) for x in eqn.prim.evaluate(*held)]
        check_outcomes(Outcome(outs, contents_of(types, held)), run(made, inputs))
        unchecked = replace(eqn.prim, check_vma=False)
        assert unchecked.typing(*types) == eqn.prim.typing(*types)
