"""Laws of effects on the world outside: no pass drops, doubles or reorders what is told.

Programs tell what they do by recorders (``effax.testing.laws.recording``), and logs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from effax.ir.eval.numpy import evaluate
from effax.ir.syntax import Jaxpr, renumbered
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.passes.library import ALL
from effax.passes.pipeline import AnyPass
from effax.testing.generate.features import COMPILED, NUMERIC
from effax.testing.generate.values import Outcome, check_outcomes, random_inputs, run
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.partial_eval import (
    POLICIES,
    check_recomposition,
    forced_results,
    known_inputs,
    run_recomposed,
)
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.programs import assert_valid, compiled_outcome
from effax.testing.laws.recording import (
    Log,
    check_as_often,
    check_logs,
    check_same,
    recorded,
    with_callbacks,
)
from effax.testing.laws.simplify import used_results
from effax.testing.laws.vmap import batch_element, random_batch
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import linearize
from effax.transforms.partial_eval.partial_eval import partial_eval, recompose


@contextmanager
def with_calls(jaxpr: Jaxpr, seed: int, answers: bool = False) -> Iterator[Jaxpr]:
    """The program with calls of the host in it, which what is raised in the block shows."""
    f = with_callbacks(jaxpr, seed, answers)
    try:
        yield f
    except AssertionError as error:
        # An error is told apart by its class and place: it is the same one, with more to say.
        error.args = (f"{error}\n\nIn the program with calls of the host:\n\n{f}",)
        raise


class Reported(NamedTuple):
    """A run: what it gave, and what it told."""

    outcome: Outcome
    log: Log


def observe(run_it: Callable[[], Outcome]) -> Reported:
    """Run something that records."""
    with recorded() as log:
        outcome = run_it()
    return Reported(outcome, log)


@law(features=NUMERIC)
def passes_preserve_side_effects(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """log(p(f)(x)) = log(f(x)) for dce, inline, discharge, jvp, and parse after print.

    Random calls are put into ``f`` first; that changes nothing that it computes.
    """
    passes = passes or Passes()
    with with_calls(jaxpr, seed, answers=True) as f:
        assert_valid(f)
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        check_outcomes(run(jaxpr, inputs), plain.outcome)

        used = used_results(f, seed)
        live = passes.dce(f, used).jaxpr
        check_same(plain.log, observe(lambda: run(live, inputs)).log)
        check_same(plain.log, observe(lambda: run(passes.inline(f), inputs)).log)
        numbered = renumbered(f)
        again = parse(str(numbered), references=references(numbered))
        assert again == numbered, f"parsed, the program is another one:\n{again}"
        check_same(plain.log, observe(lambda: run(again, inputs)).log)
        pure = passes.discharge(f).jaxpr
        check_same(plain.log, observe(lambda: run(pure, inputs)).log)


@law(about=About.REDUNDANT, features=NUMERIC)
def optimizations_preserve_side_effects(jaxpr: Jaxpr, seed: int = 0) -> None:
    """log(p(f)(x)) = log(f(x)) for every optimisation p, whatever commutes aside."""
    for step in ALL:
        check_side_effects(jaxpr, seed, step)


@law(about=About.REDUNDANT, features=NUMERIC)
def pass_preserves_side_effects(jaxpr: Jaxpr, seed: int, step: AnyPass) -> None:
    """log(p(f)(x)) = log(f(x)) for the pass p, whatever commutes aside.

    Calls of the host are put into ``f`` first; that changes nothing that it computes.
    """
    check_side_effects(jaxpr, seed, step)


def check_side_effects(jaxpr: Jaxpr, seed: int, step: AnyPass) -> None:
    """:func:`pass_preserves_side_effects`, for use inside of other laws."""
    with with_calls(jaxpr, seed, answers=True) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        made = unwrap(step(f))
        assert_valid(made)
        found = observe(partial(run, made, inputs))
        check_outcomes(plain.outcome, found.outcome)
        check_logs(plain.log, found.log)


@law(features=NUMERIC)
def derivatives_preserve_side_effects(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """log(jvp(f)(x, t)) = log(primal(f)(x)) = log(f(x)), and the linear program tells nothing."""
    passes = passes or Passes()
    with with_calls(jaxpr, seed) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        mask = differentiated(f.in_types, seed)
        tangents = [t for t in random_tangents(f.in_types, mask, seed) if t is not None]
        pushed = passes.jvp(f, mask).jaxpr
        assert_valid(pushed)
        check_same(plain.log, observe(lambda: run(pushed, [*inputs, *tangents])).log)
        made = unwrap(linearize(f, mask, rules=passes.rules))
        assert not made.linear.effects.side_effects, (
            f"the linear program acts outside:\n{made.linear}"
        )
        check_same(plain.log, observe(lambda: run(made.primal, inputs)).log)


@law(features=NUMERIC)
def partial_eval_preserves_side_effects(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """log(known(x)) + log(unknown(r, y)) = log(f(x, y)), under policies too: nothing twice.

    Calls on one channel keep their order; those that commute with everything need not.
    """
    passes = passes or Passes()
    with with_calls(jaxpr, seed, answers=True) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        known, forced = known_inputs(f, seed), forced_results(f, seed)
        policy = POLICIES[seed % len(POLICIES)]
        for made in (
            passes.partial_eval(f, known, forced),
            unwrap(partial_eval(f, known, policy, forced, passes.rules)),
        ):
            check_recomposition(f, made, known, forced, seed)
            check_logs(plain.log, observe(partial(run_recomposed, f, made, known, inputs)).log)
            check_logs(plain.log, observe(partial(run, recompose(made), inputs)).log)


@law(features=NUMERIC)
def vmap_repeats_side_effects(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """log(vmap(f)(xs)) = what log(f(x)) is for each x of xs; of one lane, in its order."""
    passes = passes or Passes()
    with with_calls(jaxpr, seed) as f:
        batch = random_batch(f, seed)
        made = passes.vmap(f, batch.size, batch.axes).jaxpr
        assert_valid(made)
        found = observe(lambda: run(made, batch.inputs))
        held = batch._replace(inputs=[np.array(x) for x in batch.inputs])

        def one_by_one() -> Outcome:
            for i in range(batch.size):
                evaluate(f, batch_element(held, i))
            return found.outcome

        expected = observe(one_by_one)
        check_as_often(expected.log, found.log)
        if batch.size == 1:
            check_same(expected.log, found.log)


@law(features=COMPILED, costly=True)
def lowering_preserves_side_effects(jaxpr: Jaxpr, seed: int = 0) -> None:
    """log(compile(f)(x)) = log(f(x)), in the order of the program."""
    with with_calls(jaxpr, seed, answers=True) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        found = observe(lambda: compiled_outcome(f, inputs))
        check_outcomes(plain.outcome, found.outcome)
        check_same(plain.log, found.log)
