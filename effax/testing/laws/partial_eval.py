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
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Policy
from effax.transforms.framework.runner import unwrap
from effax.transforms.partial_eval.partial_eval import PartialEval, partial_eval, recompose


def known_inputs(jaxpr: Jaxpr, seed: int) -> Mask:
    """Return the mask of known inputs: random ones; for seed 0 the arrays."""
    rng = np.random.default_rng([seed, 3])
    draws = [bool(rng.integers(0, 2)) for _ in jaxpr.binders]
    if seed:
        return tuple(draws)
    return tuple(not isinstance(t, RefType) for t in jaxpr.in_types)


def forced_results(jaxpr: Jaxpr, seed: int) -> Mask:
    """Return the mask of a few results that the unknown jaxpr must return."""
    rng = np.random.default_rng([seed, 4])
    return tuple(bool(rng.integers(0, 4) == 0) for _ in jaxpr.outs)


@law(of_primitives=True)
def partial_eval_recomposes(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """unknown(residuals(known(x)), y) = f(x, y): results, references, types, order of effects."""
    known, forced = known_inputs(jaxpr, seed), forced_results(jaxpr, seed)
    check_recomposition(jaxpr, passes.partial_eval(jaxpr, known, forced), known, forced, seed)


def keep_nothing(eqn: Eqn) -> bool:
    """Recompute all equations without effects in the unknown jaxpr."""
    return False


def keep_contractions(eqn: Eqn) -> bool:
    """Save the results of contractions and sums."""
    return isinstance(eqn.prim, DotGeneral | ReduceSum)


def keep_cheap(eqn: Eqn) -> bool:
    """Save the results of elementwise equations; run calls and loops again."""
    return not eqn.prim.subjaxprs() and len(eqn.ins) < 3


POLICIES: Final[tuple[Policy, ...]] = (keep_nothing, keep_contractions, keep_cheap)


@law(features=NUMERIC)
def partial_eval_under_a_policy_recomposes(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """unknown(residuals(known(x)), y) = f(x, y) under every policy; no effect is repeated."""
    known, forced = known_inputs(jaxpr, seed), forced_results(jaxpr, seed)
    policy = POLICIES[seed % len(POLICIES)]
    made = unwrap(partial_eval(jaxpr, known, policy, forced, passes.rules))
    check_recomposition(jaxpr, made, known, forced, seed)


def check_recomposition(
    jaxpr: Jaxpr, made: PartialEval, known: Mask, forced: Mask, seed: int
) -> None:
    """Raise AssertionError unless the known and the unknown jaxpr recompose to the program."""
    inputs = random_inputs(jaxpr.in_types, seed)
    expected = run(jaxpr, inputs)
    check_outcomes(expected, run_recomposed(jaxpr, made, known, inputs))
    for i, (has, force) in enumerate(zip(made.known_outs, forced, strict=True)):
        assert not (has and force), f"result {i} was required of the unknown jaxpr"
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
    """Run the known jaxpr, then the unknown one."""
    values = [np.array(x) for x in inputs]
    knowns = evaluate(made.known, [x for x, has in zip(values, known, strict=True) if has])
    residuals = [r.pick(values, knowns) for r in made.residuals]
    rest = [x for x, has in zip(values, known, strict=True) if not has]
    unknowns = evaluate(made.unknown, [*residuals, *rest])
    first, second = iter(knowns), iter(unknowns)
    outs = [np.array(next(first) if has else next(second)) for has in made.known_outs]
    return Outcome(outs, contents_of(jaxpr.in_types, values))


@law(features=NUMERIC)
def partial_eval_of_all_or_nothing(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """All known: the unknown jaxpr is empty. None known: the known jaxpr has no effects."""
    made = passes.partial_eval(jaxpr, (True,) * len(jaxpr.binders))
    assert not made.unknown.eqns, f"all inputs are known, and equations are left:\n{made.unknown}"
    assert all(made.known_outs), f"all inputs are known, and results are not: {made.known_outs}"
    inputs = random_inputs(jaxpr.in_types, seed)
    check_outcomes(run(jaxpr, inputs), run(recompose(made), inputs))

    made = passes.partial_eval(jaxpr, (False,) * len(jaxpr.binders))
    touched = [e for e in made.known.effects if not isinstance(e, SideEffect)]
    assert not touched, f"no input is known, and the known jaxpr has effects: {made.known.effects}"
    check_outcomes(run(jaxpr, inputs), run(recompose(made), inputs))
