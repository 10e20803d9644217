"""Laws of ``vmap``."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from effax.effects import Accum, ArgIndex, Read
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType
from effax.testing.generate.features import NUMERIC, SMOOTH
from effax.testing.generate.values import (
    Outcome,
    check_all,
    check_outcomes,
    contents_of,
    element,
    random_inputs,
    run,
    with_zeros,
)
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.transpose import full_specs
from effax.transforms.framework.propagation import Mask
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.vmap.common import batched_type

Axes = tuple[int | None, ...]


class Batch(NamedTuple):
    """Inputs of a batched program.

    Attributes:
        size: the number of batch elements.
        axes: the batch axis of each input; None: unbatched.
        inputs: the inputs, with these axes.
    """

    size: int
    axes: Axes
    inputs: list[Value]

    @staticmethod
    def of(jaxpr: Jaxpr, size: int, axes: Axes, seed: int) -> Batch:
        """Return random inputs with these batch axes."""
        types = [
            t if axis is None else batched_type(t, size, axis)
            for t, axis in zip(jaxpr.in_types, axes, strict=True)
        ]
        return Batch(size, axes, random_inputs(types, seed))

    def copied(self) -> Batch:
        return self._replace(inputs=[np.array(x) for x in self.inputs])

    def element(self, index: int) -> list[Value]:
        """Return the inputs of one element: views, so that references write into the batch."""
        return [
            x if axis is None else element(x, index, axis)
            for x, axis in zip(self.inputs, self.axes, strict=True)
        ]


SIZES: Final = (2, 3, 1, 0)
"""The sizes of batches, by the seed of the inputs."""


def random_batch(jaxpr: Jaxpr, seed: int, front: bool = False) -> Batch:
    """Return a batch for a program: for seed 0 of two elements, every input batched in front.

    A reference is unbatched only if the program does nothing else than read it, or add to it:
    elements may not see what others wrote.
    """
    rng = np.random.default_rng([seed, 2])
    size = SIZES[seed % len(SIZES)]
    axes = tuple(_axis(rng, jaxpr, i, front or seed == 0, seed) for i in range(len(jaxpr.binders)))
    return Batch.of(jaxpr, size, axes, seed)


def _axis(rng: np.random.Generator, jaxpr: Jaxpr, index: int, front: bool, seed: int) -> int | None:
    type_ = jaxpr.in_types[index]
    often = isinstance(type_, RefType)
    share, axis = rng.integers(0, 3) <= often, int(rng.integers(0, len(type_.shape) + 1))
    kinds = {type(e) for e in jaxpr.effects.on(ArgIndex(index))}
    may_share = not isinstance(type_, RefType) or kinds in (set(), {Read}, {Accum})
    if share and may_share and seed:
        return None
    return 0 if front else axis


def stacked(jaxpr: Jaxpr, batch: Batch) -> Outcome:
    """Evaluate the batch elements in sequence, and stack their results."""
    copied = batch.copied()
    parts = [[np.array(x) for x in evaluate(jaxpr, copied.element(i))] for i in range(batch.size)]
    outs = [
        np.stack([outs[j] for outs in parts]) if parts else np.zeros((0, *t.shape), t.dtype)
        for j, t in enumerate(jaxpr.out_types)
    ]
    return Outcome(outs, contents_of(jaxpr.in_types, copied.inputs))


@law(features=NUMERIC, of_primitives=True)
def vmap_is_stacking(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """vmap(f)(xs) = stack(f(x) for x in xs), references included."""
    batch = random_batch(jaxpr, seed)
    made = passes.vmap(jaxpr, batch.size, batch.axes).jaxpr
    check_outcomes(stacked(jaxpr, batch), run(made, batch.inputs))


@law(features=SMOOTH, of_primitives=True)
def vmap_commutes_with_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """jvp(vmap(f)) = vmap(jvp(f))."""
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
    x = with_zeros(types, other.out_tangents, expected.outs[n:])
    y = with_zeros(types, first.out_tangents, found.outs[n:])
    check_all("tangent", x, y)


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def vmap_commutes_with_transpose(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """transpose(vmap(f)) = vmap(transpose(f))."""
    batch = random_batch(jaxpr, seed, front=True)
    # Linear inputs are batched: the cotangent of an unbatched one is a sum over the elements.
    axes = tuple(0 if has else axis for has, axis in zip(linear, batch.axes, strict=True))
    types = [
        t if axis is None else batched_type(t, batch.size, axis)
        for t, axis in zip(jaxpr.in_types, axes, strict=True)
    ]
    ct_specs = full_specs(jaxpr, linear)
    first = passes.transpose(passes.vmap(jaxpr, batch.size, axes).jaxpr, ct_specs)
    other = passes.transpose(jaxpr, ct_specs)
    fixed = [axis for axis, has in zip(axes, linear, strict=True) if not has]
    rest = [0] * (len(other.jaxpr.binders) - len(fixed))
    second = passes.vmap(other.jaxpr, batch.size, [*fixed, *rest])
    assert first.jaxpr.in_types == second.jaxpr.in_types
    inputs = random_inputs(first.jaxpr.in_types, seed)
    found, expected = run(first.jaxpr, inputs), run(second.jaxpr, inputs)
    check_all("final cotangent of reference", expected.contents, found.contents)
    values = [t for t, w in zip(types, ct_specs, strict=True) if isinstance(w, GradValue)]
    check_all(
        "cotangent",
        with_zeros(values, other.nonzero, expected.outs),
        with_zeros(values, first.nonzero, found.outs),
    )


@law(features=NUMERIC, of_primitives=True)
def vmap_commutes_with_discharge(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """discharge(vmap(f)) = vmap(discharge(f))."""
    # An unbatched reference sums what the elements add to it, while its discharged contents are
    # values, of which each element returns its own: references that change are batched.
    batch = random_batch(jaxpr, seed, front=True)
    done = passes.discharge(jaxpr)
    axes = tuple(
        0 if axis is None and i in done.changed else axis for i, axis in enumerate(batch.axes)
    )
    inputs = Batch.of(jaxpr, batch.size, axes, seed).inputs
    first = passes.discharge(passes.vmap(jaxpr, batch.size, axes).jaxpr)
    second = passes.vmap(done.jaxpr, batch.size, axes).jaxpr
    assert first.changed == done.changed, (
        f"other references are changed: {first.changed}, not {done.changed}"
    )
    check_all("result", run(second, inputs).outs, run(first.jaxpr, inputs).outs)
