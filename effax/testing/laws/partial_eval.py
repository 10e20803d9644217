"""Laws of partial evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.effects import SideEffect
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.prims import DotGeneral, ReduceSum
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType
from effax.testing.generate.features import NUMERIC
from effax.testing.generate.values import Outcome, check_outcomes, contents_of, random_inputs, run
from effax.testing.laws.law import law
from effax.testing.laws.pass_set import Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Policy
from effax.transforms.framework.runner import unwrap
from effax.transforms.partial_eval.partial_eval import PartialEval, partial_eval, recompose


def known_inputs(jaxpr: Jaxpr, seed: int) -> Mask:
    """Which inputs are known: half of them; for seed 0 the arrays."""
    rng = np.random.default_rng([seed, 3])
    draws = [bool(rng.integers(0, 2)) for _ in jaxpr.binders]
    if seed:
        return tuple(draws)
    return tuple(not isinstance(t, RefType) for t in jaxpr.in_types)


def forced_results(jaxpr: Jaxpr, seed: int) -> Mask:
    """A few results, which the unknown half is to give in any case."""
    rng = np.random.default_rng([seed, 4])
    return tuple(bool(rng.integers(0, 4) == 0) for _ in jaxpr.outs)


@law(of_primitives=True)
def partial_eval_recomposes(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """unknown(residuals(known(x)), y) = f(x, y): results, references, types, order of effects."""
    passes = passes or Passes()
    known, forced = known_inputs(jaxpr, seed), forced_results(jaxpr, seed)
    check_recomposition(jaxpr, passes.partial_eval(jaxpr, known, forced), known, forced, seed)


def keep_nothing(eqn: Eqn) -> bool:
    """The unknown half computes everything again that has no effects."""
    return False


def keep_contractions(eqn: Eqn) -> bool:
    """What is expensive is kept."""
    return isinstance(eqn.prim, DotGeneral | ReduceSum)


def keep_cheap(eqn: Eqn) -> bool:
    """What is elementwise is kept; calls and loops are run again."""
    return not eqn.prim.subjaxprs() and len(eqn.ins) < 3


POLICIES: Final[tuple[Policy, ...]] = (keep_nothing, keep_contractions, keep_cheap)


@law(features=NUMERIC)
def partial_eval_under_a_policy_recomposes(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """The halves recompose whatever is computed again in the unknown one; no effect is repeated."""
    passes = passes or Passes()
    known, forced = known_inputs(jaxpr, seed), forced_results(jaxpr, seed)
    policy = POLICIES[seed % len(POLICIES)]
    made = unwrap(partial_eval(jaxpr, known, policy, forced, passes.rules))
    check_recomposition(jaxpr, made, known, forced, seed)


def check_recomposition(
    jaxpr: Jaxpr, made: PartialEval, known: Mask, forced: Mask, seed: int
) -> None:
    """Raise AssertionError unless a program and its two halves are the same in all that counts."""
    inputs = random_inputs(jaxpr.in_types, seed)
    expected = run(jaxpr, inputs)
    check_outcomes(expected, run_recomposed(jaxpr, made, known, inputs))
    for i, (has, force) in enumerate(zip(made.known_outs, forced, strict=True)):
        assert not (has and force), f"result {i} was asked of the unknown half"
    whole = recompose(made)
    assert whole.in_types == jaxpr.in_types, f"inputs have other types:\n{whole}"
    assert whole.out_types == jaxpr.out_types, f"results have other types:\n{whole}"
    assert set(whole.effects) <= set(jaxpr.effects), (
        f"effects {whole.effects}, which the program does not have: {jaxpr.effects}"
    )
    check_outcomes(expected, run(whole, inputs))


def run_recomposed(
    jaxpr: Jaxpr, made: PartialEval, known: Mask, inputs: Sequence[Value]
) -> Outcome:
    """Run the known half, then the unknown one."""
    held = [np.array(x) for x in inputs]
    early = evaluate(made.known, [x for x, has in zip(held, known, strict=True) if has])
    residuals = [r.pick(held, early) for r in made.residuals]
    rest = [x for x, has in zip(held, known, strict=True) if not has]
    late = evaluate(made.unknown, [*residuals, *rest])
    first, second = iter(early), iter(late)
    outs = [np.array(next(first) if has else next(second)) for has in made.known_outs]
    return Outcome(outs, contents_of(jaxpr.in_types, held))


@law(features=NUMERIC)
def partial_eval_of_all_or_nothing(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """All known: nothing is left for the unknown half. None known: the known half has no effect."""
    passes = passes or Passes()
    made = passes.partial_eval(jaxpr, (True,) * len(jaxpr.binders))
    assert not made.unknown.eqns, f"all is known, and this is left:\n{made.unknown}"
    assert all(made.known_outs), f"all is known, and results are not: {made.known_outs}"
    inputs = random_inputs(jaxpr.in_types, seed)
    check_outcomes(run(jaxpr, inputs), run(recompose(made), inputs))

    made = passes.partial_eval(jaxpr, (False,) * len(jaxpr.binders))
    touched = [e for e in made.known.effects if not isinstance(e, SideEffect)]
    assert not touched, f"nothing is known, and the known half has effects: {made.known.effects}"
    check_outcomes(run(jaxpr, inputs), run(recompose(made), inputs))
