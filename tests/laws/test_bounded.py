from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from effax.ir.analysis.check import check
from effax.ir.build import Builder
from effax.ir.prims import While
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.testing.generate.values import check_outcomes, random_inputs, run
from effax.testing.strategies import NUMERIC, programs, seeds
from effax.transforms.reverse.bounded_while import Checkpoints, bounded

LOOPS = replace(NUMERIC, focus="while")
MOST = 6
"""More steps than any loop of these programs takes."""


def with_bounds(jaxpr: Jaxpr, kind: Checkpoints) -> Jaxpr:
    """The program with a bound on its loops; on those with effects, where all is kept."""
    b = Builder(jaxpr.in_types)
    env: dict[int, Atom] = {v.id: w for v, w in zip(jaxpr.binders, b.binders, strict=True)}

    def value(a: Atom) -> Atom:
        return a if isinstance(a, Lit) else env[a.id]

    for eqn in jaxpr.eqns:
        args = [value(a) for a in eqn.ins]
        prim = eqn.prim
        outs: list[Atom]
        if isinstance(prim, While) and (kind is Checkpoints.ALL or not eqn.effects):
            outs = b.inline_jaxpr(bounded(prim, MOST, kind), args)
        else:
            outs = list(b.emit(prim, args))
        env.update((v.id, x) for v, x in zip(eqn.outs, outs, strict=True))
    return b.finish([value(a) for a in jaxpr.outs])


@given(programs(LOOPS), st.sampled_from(Checkpoints), seeds)
def test_a_bound_that_is_not_reached(jaxpr: Jaxpr, kind: Checkpoints, seed: int) -> None:
    """bounded(while, n) = while, where it takes fewer than n steps"""
    made = with_bounds(jaxpr, kind)
    check(made).unwrap()
    inputs = random_inputs(jaxpr.in_types, seed)
    check_outcomes(run(jaxpr, inputs), run(made, inputs))
