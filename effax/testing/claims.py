"""Hold a pass to what it claims with one call: random programs, made small where it fails."""

from __future__ import annotations

from effax.passes import Step
from effax.passes.steps import passes_of
from effax.testing import laws
from effax.testing.features import ANYTHING, COMPILED, Features
from effax.testing.statement import About, Law
from effax.testing.trying import Trial, attempt, told


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
    __tracebackhide__ = True
    given = {"step": passes_of(step)}
    held: list[Law[...]] = [laws.pass_keeps_its_claims, laws.pass_is_a_function]
    if compiled:
        held.append(laws.compiled_passes_mean_the_same)
    trials = [Trial(law, given) for law in held]
    # Plain programs are simpler; what is redundant is what most passes look for.
    plain = examples if compiled else (examples + 1) // 2
    attempt(trials, About.PROGRAMS, COMPILED if compiled else features, plain)
    if plain < examples:
        attempt(trials, About.REDUNDANT, features, examples - plain)
    told(trials, strict=False)
