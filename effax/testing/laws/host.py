"""Laws of side effects: passes do not drop, repeat or reorder calls of the host.

Calls of recorders (``effax.testing.laws.recording``) are inserted at random places of a program,
which changes no value that it computes; their logs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from effax.ir.edit.alpha import renumbered
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.passes.library import ALL
from effax.passes.pipeline import AnyPass
from effax.testing.generate.features import COMPILED, NUMERIC
from effax.testing.generate.values import Outcome, check_outcomes, random_inputs, run
from effax.testing.laws.dce import used_results
from effax.testing.laws.instrumented import instrumented
from effax.testing.laws.jvp import differentiated, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.partial_eval import (
    POLICIES,
    check_recomposition,
    forced_results,
    known_inputs,
    run_recomposed,
)
from effax.testing.laws.programs import assert_valid, compiled_outcome
from effax.testing.laws.recording import (
    Log,
    RecordedEffect,
    check_call_order,
    check_effects_run,
    check_logs,
    check_same_calls,
    check_same_order,
    effects_recorder,
    recorded,
    with_callbacks,
)
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.vmap import Batch, random_batch
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import linearize
from effax.transforms.partial_eval.partial_eval import partial_eval, recompose


@contextmanager
def with_calls(
    jaxpr: Jaxpr, seed: int, returns: bool = False, varied: bool = False
) -> Iterator[Jaxpr]:
    """Yield the program with calls of the host, and print it in errors that the block raises."""
    f = with_callbacks(jaxpr, seed, returns, varied)
    try:
        yield f
    except AssertionError as error:
        # Reports identify an error by its class and line, which stay.
        error.args = (f"{error}\n\nIn the program with calls of the host:\n\n{f}",)
        raise


class Observed(NamedTuple):
    """The outcome and the log of a run."""

    outcome: Outcome
    log: Log


def observe(run_it: Callable[[], Outcome]) -> Observed:
    """Run a function, and record its calls."""
    with recorded() as log:
        outcome = run_it()
    return Observed(outcome, log)


@law(features=NUMERIC)
def passes_preserve_side_effects(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """log(p(f)(x)) = log(f(x)) for dce, inline, discharge, and parse after print."""
    with with_calls(jaxpr, seed, returns=True) as f:
        assert_valid(f)
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        check_outcomes(run(jaxpr, inputs), plain.outcome)
        numbered = renumbered(f)
        parsed = parse(str(numbered), references=references(numbered))
        assert parsed == numbered, f"the parsed program differs:\n{parsed}"
        live = passes.dce(f, used_results(f, seed)).jaxpr
        for made in (live, passes.inline(f), parsed, passes.discharge(f).jaxpr):
            check_same_order(plain.log, observe(partial(run, made, inputs)).log)


@law(about=About.REDUNDANT, features=NUMERIC)
def optimizations_preserve_side_effects(jaxpr: Jaxpr, seed: int = 0) -> None:
    """log(p(f)(x)) = log(f(x)) for every optimization p, up to calls that commute."""
    for step in ALL:
        check_side_effects(jaxpr, seed, step)


@law(about=About.REDUNDANT, features=NUMERIC)
def pass_preserves_side_effects(
    jaxpr: Jaxpr, seed: int, step: AnyPass, values: bool = True
) -> None:
    """log(p(f)(x)) = log(f(x)) for the pass p, up to calls that commute.

    Args:
        jaxpr: the program, in which calls of the host are inserted.
        seed: the seed of the places of calls, and of inputs.
        step: the pass or composition.
        values: whether the operands of calls and the results have to be equal too.
    """
    check_side_effects(jaxpr, seed, step, values)


def check_side_effects(jaxpr: Jaxpr, seed: int, step: AnyPass, values: bool = True) -> None:
    """Check :func:`pass_preserves_side_effects` as part of another law."""
    with with_calls(jaxpr, seed, returns=True, varied=True) as f:
        inputs = random_inputs(f.in_types, seed)
        plain, expected = _observe_effects(f, inputs)
        made = unwrap(step(f))
        assert_valid(made)
        found, others = _observe_effects(made, inputs)
        if values:
            check_outcomes(plain.outcome, found.outcome)
        check_logs(plain.log, found.log, values)
        check_effects_run(expected, others, values)


def _observe_effects(
    jaxpr: Jaxpr, inputs: Sequence[Value]
) -> tuple[Observed, list[RecordedEffect]]:
    """Run a program; record the calls of recorders, and of other primitives with side effects."""
    recorded_effects, record = effects_recorder()
    return observe(lambda: run(instrumented(jaxpr, record), inputs)), recorded_effects


@law(features=NUMERIC)
def derivatives_preserve_side_effects(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """log(jvp(f)(x, t)) = log(primal(f)(x)) = log(f(x)), and the linear program has no calls."""
    with with_calls(jaxpr, seed) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        mask = differentiated(f.in_types, seed)
        tangents = [t for t in random_tangents(f.in_types, mask, seed) if t is not None]
        pushed = passes.jvp(f, mask).jaxpr
        assert_valid(pushed)
        check_same_order(plain.log, observe(lambda: run(pushed, [*inputs, *tangents])).log)
        made = unwrap(linearize(f, mask, rules=passes.rules))
        assert not made.linear.effects.side_effects, made.linear
        check_same_order(plain.log, observe(lambda: run(made.primal, inputs)).log)


@law(features=NUMERIC)
def partial_eval_preserves_side_effects(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """log(known(x)) + log(unknown(r, y)) = log(f(x, y)), under every policy.

    Calls on one channel keep their order; those that commute with everything need not.
    """
    with with_calls(jaxpr, seed, returns=True) as f:
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
def vmap_repeats_side_effects(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """log(vmap(f)(xs)) has the calls of log(f(x)) for each x of xs; each call of f in their order.

    The order is that of a single call, and of all calls of a single x; of nested batches too.
    """
    with with_calls(jaxpr, seed) as f:
        batch = random_batch(f, seed)
        made = passes.vmap(f, batch.size, batch.axes).jaxpr
        assert_valid(made)
        found = observe(lambda: run(made, batch.inputs))
        logs = element_logs(f, batch)
        check_same_calls([call for log in logs for call in log], found.log)
        check_call_order(logs, found.log)
        if batch.size == 1:
            check_same_order(logs[0], found.log)
        outer = random_batch(made, seed + 1)
        twice = passes.vmap(made, outer.size, outer.axes).jaxpr
        inner = outer.copied()
        logs = [
            log
            for i in range(outer.size)
            for log in element_logs(f, batch._replace(inputs=inner.element(i)))
        ]
        check_call_order(logs, observe(lambda: run(twice, outer.inputs)).log)


def element_logs(jaxpr: Jaxpr, batch: Batch) -> list[Log]:
    """Return the calls for each batch element; references of the batch are not changed."""
    copied = batch.copied()
    logs: list[Log] = []
    for i in range(batch.size):
        with recorded() as log:
            evaluate(jaxpr, copied.element(i))
        logs.append(log)
    return logs


@law(features=COMPILED, costly=True)
def lowering_preserves_side_effects(jaxpr: Jaxpr, seed: int = 0) -> None:
    """log(compile(f)(x)) = log(f(x)), in the order of the program."""
    with with_calls(jaxpr, seed, returns=True) as f:
        inputs = random_inputs(f.in_types, seed)
        plain = observe(lambda: run(f, inputs))
        found = observe(lambda: compiled_outcome(f, inputs))
        check_outcomes(plain.outcome, found.outcome)
        check_same_order(plain.log, found.log)
