"""Hold a pass to what it claims with one call: random programs, made small where it fails."""

from __future__ import annotations

from functools import partial
from typing import Any

from effax.passes import Step
from effax.passes.steps import passes_of
from effax.testing import laws
from effax.testing.features import ANYTHING, COMPILED, Features
from effax.testing.search import PROGRAMS, REDUNDANT, search, strategy_of
from effax.transforms.run import unwrap


def check_pass(
    step: Step,
    *,
    features: Features = ANYTHING,
    compiled: bool = False,
    examples: int = 100,
) -> None:
    """Hold a pass, or a pipeline of some, to what it claims, on random programs.

    It is to be pure, to give valid programs with the same types of inputs and results, and to keep
    the laws of its ``laws``.

    Args:
        step: the pass.
        features: what the programs have.
        compiled: whether what it gives is compiled too, and compared with what was given.
        examples: how many programs are tried. Equal arguments try equal programs.

    Raises:
        LawBroken: it does not do what it claims; the message has a small program.
        BadArgument: ``step`` is no pass.
        ImportError: Hypothesis is not installed.
    """
    given = passes_of(step)
    hold = partial(_hold_claims, given, compiled)
    # Plain programs shrink better; what is redundant is what most passes look for.
    plain = examples if compiled else (examples + 1) // 2
    search(hold, strategy_of(PROGRAMS, COMPILED if compiled else features), plain)
    if plain < examples:
        search(hold, strategy_of(REDUNDANT, features), examples - plain)


def _hold_claims(step: Step, compiled: bool, drawn: tuple[Any, ...], seed: int) -> None:
    (jaxpr,) = drawn
    laws.pass_keeps_its_claims(jaxpr, seed, step)
    laws.pass_is_a_function(jaxpr, step)
    if compiled:
        laws.lowering_agrees_with_evaluation(unwrap(step(jaxpr)), seed)
