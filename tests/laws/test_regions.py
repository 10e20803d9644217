"""Random programs with user-defined control flow have the meaning of those with the library's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import numpy as np
import pytest

from effax.extend import Region
from effax.ir import Jaxpr, check, is_inexact
from effax.ir.edit.rewriter import Rewriter
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Cond, Jit, Scan, While
from effax.ir.types import RefType
from effax.testing.generate.features import NUMERIC, SMOOTH
from effax.testing.generate.random_programs import program
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.values import check_outcomes, random_inputs, run
from effax.transforms import (
    dce,
    discharge,
    hoist,
    jvp,
    loop_carries,
    partial_eval,
    recompose,
    unroll,
    unwrap,
    vmap,
)
from tests.unit.extend.region_primitives import Choose, Collect, Titled, Until

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Backwards(Collect):
    """A ``scan`` with its operands and results in the opposite order."""

    name: ClassVar[str] = "backwards"

    def regions(self) -> tuple[Region, ...]:
        (region,) = Collect.regions(self)
        last, end = len(self.body.binders) - 1, len(self.body.outs) - 1
        return (
            region._replace(
                args=tuple([last - a for a in region.args]),
                results=tuple([None if r is None else end - r for r in region.results]),
                carry_to=tuple([None if c is None else last - c for c in region.carry_to]),
            ),
        )


def user_defined(jaxpr: Jaxpr, loop: type[Collect]) -> Jaxpr:
    """Return the program with user-defined primitives in place of control flow."""
    made = Rewriter(jaxpr)
    step = -1 if loop is Backwards else 1
    for eqn in jaxpr.eqns:
        prim, ins = eqn.prim, made.operands(eqn)
        inner = [user_defined(j, loop) for j in prim.subjaxprs()]
        if isinstance(prim, Scan):
            counts = prim.length, prim.n_consts, prim.n_carry
            outs = made.b.emit(loop(inner[0], *counts, prim.reverse), ins[::step])
            made.replace(eqn, outs[::step])
        else:
            made.replace(eqn, made.b.emit(_other(prim, inner), ins))
    return made.finish()


def _other(prim: Primitive, inner: list[Jaxpr]) -> Primitive:
    match prim:
        case While():
            return Until(*inner)
        case Cond():
            return Choose(tuple(inner))
        case Jit():
            return Titled(inner[0], prim.name)
        case _:
            return prim.with_subjaxprs(inner) if inner else prim


Transformed = tuple[Jaxpr, list[Value]]
"""A transformed program, and its inputs."""


def _jvp(jaxpr: Jaxpr, ins: list[Value], rng: Random) -> Transformed:
    mask = [is_inexact(t) for t in jaxpr.in_types]
    tangents = [x for x, has in zip(ins, mask, strict=True) if has]
    return unwrap(jvp(jaxpr, mask, True)).jaxpr, [*ins, *[0.5 * x for x in tangents]]


def _vmap(jaxpr: Jaxpr, ins: list[Value], rng: Random) -> Transformed:
    axes = [0 if isinstance(t, RefType) or rng.random() < 0.5 else None for t in jaxpr.in_types]
    stacked = [np.stack([x, x]) if axis == 0 else x for x, axis in zip(ins, axes, strict=True)]
    return unwrap(vmap(jaxpr, 2, axes)).jaxpr, stacked


def _dce(jaxpr: Jaxpr, ins: list[Value], rng: Random) -> Transformed:
    return unwrap(dce(jaxpr, [rng.random() < 0.6 for _ in jaxpr.outs])).jaxpr, ins


def _split(jaxpr: Jaxpr, ins: list[Value], rng: Random) -> Transformed:
    known = [rng.random() < 0.5 for _ in jaxpr.in_types]
    return recompose(unwrap(partial_eval(jaxpr, known))), ins


PASSES: dict[str, Callable[[Jaxpr, list[Value], Random], Transformed]] = {
    "nothing": lambda jaxpr, ins, rng: (jaxpr, ins),
    "dce": _dce,
    "hoist": lambda jaxpr, ins, rng: (unwrap(hoist(unwrap(loop_carries(jaxpr)))), ins),
    "unroll": lambda jaxpr, ins, rng: (unwrap(unroll(jaxpr, 30)), ins),
    "discharge": lambda jaxpr, ins, rng: (unwrap(discharge(jaxpr)).jaxpr, ins),
    "jvp": _jvp,
    "vmap": _vmap,
    "partial_eval": _split,
}


@pytest.mark.parametrize("loop", [Collect, Backwards])
def test_passes_treat_user_defined_control_flow_as_their_own(loop: type[Collect]) -> None:
    for seed in range(24):
        own = program(RandomSource(Random(seed)), SMOOTH if seed % 2 else NUMERIC)
        mine = user_defined(own, loop)
        assert mine.effects == own.effects
        for name, transform in PASSES.items():
            ins = random_inputs(own.in_types, seed)
            expected, values = transform(own, ins, Random(seed))
            found, _ = transform(mine, ins, Random(seed))
            check(found).unwrap()
            assert found.in_types == expected.in_types, (seed, name)
            check_outcomes(run(expected, values), run(found, values))
