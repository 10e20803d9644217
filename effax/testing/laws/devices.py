"""Laws of programs on several devices: they agree with evaluation, which knows of no device.

On fewer devices than a mesh has, its program is compiled for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np

from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import is_float
from effax.ir.edit.operations import equation
from effax.ir.partition import Spec
from effax.ir.primitive import Value
from effax.ir.prims import ShardMap
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.types import ArrayType, RefType, Shape
from effax.testing.generate.features import COMPILED, COMPILED_MESHES
from effax.testing.generate.values import Outcome, check_outcomes, contents_of, random_inputs, run
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.law import assume, law
from effax.testing.laws.programs import compiled_outcome, done, outcome_of
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.vmap import random_batch
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse


@law(features=COMPILED_MESHES, costly=True)
def shard_map_runs_on_devices(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """compile(p(shard_map(f)))(x) = evaluate(p(shard_map(f)))(x) for p in vmap, jvp, reverse."""
    made = _transformed(jaxpr, seed, passes)
    found = [eqn for eqn in made.eqns if isinstance(eqn.prim, ShardMap)]
    assume(bool(found))
    eqn = max(found, key=lambda eqn: len(eqn.prim.subjaxprs()[0].eqns))
    types = [a.type for a in eqn.ins]
    inputs = random_inputs(types, seed)
    buffers = [np.array(x) for x in inputs]
    outs = [np.array(x) for x in eqn.prim.evaluate(*buffers)]
    check_outcomes(Outcome(outs, contents_of(types, buffers)), _on_devices(eqn, inputs))


def _transformed(jaxpr: Jaxpr, seed: int, passes: Passes) -> Jaxpr:
    mask = differentiated(jaxpr.in_types, seed)
    match seed % 4:
        case 1:
            batch = random_batch(jaxpr, seed)
            return passes.vmap(jaxpr, batch.size, batch.axes).jaxpr
        case 2:
            return passes.jvp(jaxpr, mask).jaxpr
        case 3 if not any(isinstance(t, RefType) for t in jaxpr.in_types):
            wanted = tuple([is_float(t.dtype) for t in jaxpr.out_types])
            return unwrap(reverse(jaxpr, mask, wanted, passes.rules)).jaxpr
        case _:
            return jaxpr


def _on_devices(eqn: Eqn, inputs: Sequence[Value]) -> Outcome:
    """Run an equation of ``shard_map`` on the devices of its mesh."""
    prim = eqn.prim
    assert isinstance(prim, ShardMap)
    count = prod([axis.size for axis in prim.mesh])
    here = 1 < count <= _devices()
    on = replace(prim, grid=(prim.mesh, tuple(range(count)))) if here else prim
    binders = [Var(i, a.type) for i, a in enumerate(eqn.ins)]
    outs = [Var(len(binders) + i, v.type) for i, v in enumerate(eqn.outs)]
    alone = Jaxpr(binders, [equation(on, binders, outs)], outs)
    return _placed_outcome(alone, inputs, prim.mesh) if here else compiled_outcome(alone, inputs)


@law(features=COMPILED, costly=True)
def placed_programs_agree(jaxpr: Jaxpr, seed: int = 0) -> None:
    """compile(f)(x) = evaluate(f)(x) for arrays and references that are divided over devices."""
    inputs = random_inputs(jaxpr.in_types, seed)
    rng = np.random.default_rng([seed, 7])
    shapes = [shape for shape in _MESHES if prod(shape) <= _devices()]
    sizes = shapes[rng.integers(len(shapes))] if shapes else ()
    mesh = tuple([Axis(name, n) for name, n in zip("xy", sizes, strict=False)])
    specs = [_spec(rng, t.shape, mesh) for t in jaxpr.in_types]
    found = _placed_outcome(jaxpr, inputs, mesh, specs) if mesh else compiled_outcome(jaxpr, inputs)
    check_outcomes(run(jaxpr, inputs), found)


_MESHES = ((2,), (4,), (2, 2), (8,), (4, 2))


def _spec(rng: np.random.Generator, shape: Shape, mesh: Axes) -> Spec:
    """Return a spec that divides an array over some axes, where its dimensions allow."""
    left = list(mesh)
    spec: list[tuple[str, ...]] = []
    for n in shape:
        names = [axis for axis in left if n % axis.size == 0 and n and rng.integers(3)][:1]
        left = [axis for axis in left if axis not in names]
        spec.append(tuple([axis.name for axis in names]))
    return tuple(spec)


def _devices() -> int:
    # Imported late: only this needs XLA.
    from effax.lowering import xla

    return xla.number_of_devices()


def _placed_outcome(
    jaxpr: Jaxpr, inputs: Sequence[Value], mesh: Axes, specs: Sequence[Spec] | None = None
) -> Outcome:
    """Run the program on the devices of a mesh; without specs the compiler places the inputs."""
    from effax.arrays.placed_array import put_value
    from effax.lowering import xla
    from effax.lowering.layout import DeviceLayout, MeshPlace
    from effax.lowering.program import compile_program, run_program

    given = [None] * len(inputs) if specs is None else [MeshPlace(mesh, spec) for spec in specs]
    devices = xla.devices()[: prod([axis.size for axis in mesh])]
    layout = DeviceLayout(devices, tuple(given), (None,) * len(jaxpr.outs))
    program = done(compile_program(jaxpr, layout=layout))
    types = cast("tuple[ArrayType, ...]", program.discharged.jaxpr.in_types)
    triples = zip(inputs, types, program.executable.in_places, strict=True)
    made = done(run_program(program, [put_value(x, t, place) for x, t, place in triples]))
    pairs = zip(made, program.executable.out_places, strict=True)
    return outcome_of(program, [xla.gathered(x, place) for x, place in pairs], inputs)
