"""Laws of batching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax.effects import Accum, ArgIndex, Read
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type
from effax.testing.generate.features import NUMERIC, SMOOTH
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
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.vmap.common import batched_type

Axes = tuple[int | None, ...]


class Batch(NamedTuple):
    """Lanes of inputs.

    Attributes:
        size: how many.
        axes: for each input, where its batch axis is; None: all lanes share it.
        inputs: the inputs, with these axes.
    """

    size: int
    axes: Axes
    inputs: list[Value]


def random_batch(jaxpr: Jaxpr, seed: int, front: bool = False) -> Batch:
    """Lanes for a program: two, and every input batched in front, for seed 0.

    All lanes share a reference only where they only read it, or only add to it: else they would
    see each other.
    """
    rng = np.random.default_rng([seed, 2])
    size = 2 if seed == 0 else int(rng.choice([2, 3, 1, 0], p=[0.4, 0.4, 0.15, 0.05]))
    axes = tuple(_axis(rng, jaxpr, i, front or seed == 0, seed) for i in range(len(jaxpr.binders)))
    types = [
        t if axis is None else batched_type(t, size, axis)
        for t, axis in zip(jaxpr.in_types, axes, strict=True)
    ]
    return Batch(size, axes, random_inputs(types, seed))


def _axis(rng: np.random.Generator, jaxpr: Jaxpr, index: int, front: bool, seed: int) -> int | None:
    type_ = jaxpr.in_types[index]
    often = isinstance(type_, RefType)
    share, axis = rng.integers(0, 3) <= often, int(rng.integers(0, len(type_.shape) + 1))
    kinds = {type(e) for e in jaxpr.effects.on(ArgIndex(index))}
    may_share = not isinstance(type_, RefType) or kinds in (set(), {Read}, {Accum})
    if share and may_share and seed:
        return None
    return 0 if front else axis


def batch_element(batch: Batch, index: int) -> list[Value]:
    """The inputs of one lane: views, so that a reference's buffer is part of the batch's."""
    return [
        x if axis is None else _view(x, index, axis)
        for x, axis in zip(batch.inputs, batch.axes, strict=True)
    ]


def _view(x: Value, index: int, axis: int) -> Value:
    """Element ``index`` along an axis: an array that is a view, also where it is a scalar."""
    moved = np.moveaxis(x, axis, 0)
    return moved[index : index + 1].reshape(moved.shape[1:]) if moved.ndim == 1 else moved[index]


def stacked(jaxpr: Jaxpr, batch: Batch) -> Outcome:
    """What the lanes give one after the other: results stacked, references with all lanes."""
    held = batch._replace(inputs=[np.array(x) for x in batch.inputs])
    lanes = [
        [np.array(x) for x in evaluate(jaxpr, batch_element(held, i))] for i in range(batch.size)
    ]
    outs = [
        np.stack([outs[j] for outs in lanes]) if lanes else np.zeros((0, *t.shape), t.dtype)
        for j, t in enumerate(jaxpr.out_types)
    ]
    return Outcome(outs, contents_of(jaxpr.in_types, held.inputs))


@law(features=NUMERIC, of_primitives=True)
def vmap_is_stacking(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """vmap(f)(xs) = stack(f(x) for x in xs), and each lane's references."""
    passes = passes or Passes()
    batch = random_batch(jaxpr, seed)
    made = passes.vmap(jaxpr, batch.size, batch.axes).jaxpr
    check_outcomes(stacked(jaxpr, batch), run(made, batch.inputs))


@law(features=SMOOTH, of_primitives=True)
def vmap_commutes_with_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """jvp(vmap(f)) = vmap(jvp(f))."""
    passes = passes or Passes()
    batch = random_batch(jaxpr, seed)
    mask = differentiated(jaxpr.in_types, seed)
    vmapped = passes.vmap(jaxpr, batch.size, batch.axes).jaxpr
    first = passes.jvp(vmapped, mask)
    other = passes.jvp(jaxpr, mask)
    axes = (*batch.axes, *(a for a, has in zip(batch.axes, mask, strict=True) if has))
    second = passes.vmap(other.jaxpr, batch.size, axes).jaxpr
    tangents = random_tangents(vmapped.in_types, mask, seed)
    given = [*batch.inputs, *(t for t in tangents if t is not None)]
    found, expected = run(first.jaxpr, given), run(second, given)
    check_all("final content of reference", expected.contents, found.contents)
    n = len(jaxpr.outs)
    check_all("result", expected.outs[:n], found.outs[:n])
    types = [batched_type(t, batch.size) for t in jaxpr.out_types]
    x = _filled(types, other.out_tangents, expected.outs[n:])
    y = _filled(types, first.out_tangents, found.outs[n:])
    check_all("tangent", x, y)


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def vmap_commutes_with_transpose(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes | None = None
) -> None:
    """transpose(vmap(f)) = vmap(transpose(f)), lane by lane."""
    passes = passes or Passes()
    batch = random_batch(jaxpr, seed, front=True)
    # What is linear is batched: else its cotangent would be a sum over the lanes.
    axes = tuple(0 if has else axis for has, axis in zip(linear, batch.axes, strict=True))
    types = [
        t if axis is None else batched_type(t, batch.size, axis)
        for t, axis in zip(jaxpr.in_types, axes, strict=True)
    ]
    ct_specs = full_specs(jaxpr, linear)
    first = passes.transpose(passes.vmap(jaxpr, batch.size, axes).jaxpr, ct_specs)
    other = passes.transpose(jaxpr, ct_specs)
    fixed = [axis for axis, has in zip(axes, linear, strict=True) if not has]
    lanes = [0] * (len(other.jaxpr.binders) - len(fixed))
    second = passes.vmap(other.jaxpr, batch.size, [*fixed, *lanes])
    assert first.jaxpr.in_types == second.jaxpr.in_types
    inputs = random_inputs(first.jaxpr.in_types, seed)
    found, expected = run(first.jaxpr, inputs), run(second.jaxpr, inputs)
    check_all("final cotangent of reference", expected.contents, found.contents)
    values = [t for t, w in zip(types, ct_specs, strict=True) if isinstance(w, GradValue)]
    check_all(
        "cotangent",
        _filled(values, other.nonzero, expected.outs),
        _filled(values, first.nonzero, found.outs),
    )


def _filled(types: Sequence[Type], present: Mask, values: Sequence[Value]) -> list[Value]:
    """The values, with zeros where none is present."""
    given = iter(values)
    return [
        next(given) if has else np.zeros(t.shape, t.dtype)
        for t, has in zip(types, present, strict=True)
    ]


@law(features=NUMERIC, of_primitives=True)
def vmap_commutes_with_discharge(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """discharge(vmap(f)) = vmap(discharge(f))."""
    passes = passes or Passes()
    # What is added to a shared reference is summed over the lanes; shared contents are values.
    batch = random_batch(jaxpr, seed, front=True)
    done = passes.discharge(jaxpr)
    axes = tuple(
        0 if axis is None and i in done.changed else axis for i, axis in enumerate(batch.axes)
    )
    types = [
        t if axis is None else batched_type(t, batch.size, axis)
        for t, axis in zip(jaxpr.in_types, axes, strict=True)
    ]
    inputs = random_inputs(types, seed)
    first = passes.discharge(passes.vmap(jaxpr, batch.size, axes).jaxpr)
    second = passes.vmap(done.jaxpr, batch.size, axes).jaxpr
    assert first.changed == done.changed, (
        f"other references are changed: {first.changed}, not {done.changed}"
    )
    check_all("result", run(second, inputs).outs, run(first.jaxpr, inputs).outs)
