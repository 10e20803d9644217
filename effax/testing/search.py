"""Hold passes and rules to the laws with one call: random programs, made small where they fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from effax.ir.errors import BadArgument
from effax.testing import laws
from effax.testing.features import ANYTHING, NUMERIC, SMOOTH, Features
from effax.testing.passes import Passes

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Check = Callable[..., None]
"""A law of what is drawn, a seed, and the passes."""

PROGRAMS, PAIRS, LINEAR, REDUNDANT = "programs", "pairs", "linear", "redundant"

LAWS: Final[dict[str, tuple[Check, str, Features]]] = {
    check.__name__: (check, shape, features)
    for check, shape, features in (
        (laws.passes_are_pure, PROGRAMS, ANYTHING),
        (laws.jvp_keeps_values, PROGRAMS, NUMERIC),
        (laws.jvp_is_linear, PROGRAMS, NUMERIC),
        (laws.jvp_is_the_derivative, PROGRAMS, SMOOTH),
        (laws.jvp_has_the_chain_rule, PAIRS, SMOOTH),
        (laws.linearize_is_jvp, PROGRAMS, SMOOTH),
        (laws.vjp_is_adjoint_to_jvp, PROGRAMS, SMOOTH),
        (laws.reverse_is_linearize_then_transpose, PROGRAMS, SMOOTH),
        (laws.partial_eval_recomposes, PROGRAMS, ANYTHING),
        (laws.partial_eval_under_a_policy_recomposes, PROGRAMS, NUMERIC),
        (laws.partial_eval_of_all_or_nothing, PROGRAMS, NUMERIC),
        (laws.transpose_is_adjoint, LINEAR, NUMERIC),
        (laws.transpose_is_its_own_inverse, LINEAR, NUMERIC),
        (laws.transpose_adds_into_references, LINEAR, NUMERIC),
        (laws.transpose_leaves_out_what_nobody_wants, LINEAR, NUMERIC),
        (laws.vmap_is_stacking, PROGRAMS, NUMERIC),
        (laws.vmap_commutes_with_jvp, PROGRAMS, SMOOTH),
        (laws.vmap_commutes_with_discharge, PROGRAMS, NUMERIC),
        (laws.vmap_commutes_with_transpose, LINEAR, NUMERIC),
        (laws.discharge_is_observationally_equal, PROGRAMS, NUMERIC),
        (laws.dce_keeps_what_is_observed, PROGRAMS, NUMERIC),
        (laws.inline_keeps_what_is_observed, PROGRAMS, NUMERIC),
    )
}
"""The laws that are about passes, and the programs on which they are tried."""


def check_laws(
    passes: Passes | None = None,
    *,
    only: Sequence[str] = (),
    focus: str = "",
    examples: int = 25,
) -> tuple[str, ...]:
    """Hold passes, or the rules of a book, to the laws on random programs.

    ::

        check_laws(Passes(book=DEFAULT_BOOK.extend(Mine, rules)), focus="elementwise.mul")
        check_laws(dataclasses.replace(Passes(), dce=my_dce), only=["dce_keeps_what_is_observed"])

    Args:
        passes: the passes; the library's own where it is None.
        only: names of laws; all that are about passes where none is given.
        focus: the kind of step that programs are full of (``effax.testing.growth.step_names``).
        examples: how many programs a law is tried on. Equal arguments try equal programs.

    Returns:
        The names of the laws that were tried.

    Raises:
        LawBroken: a law does not hold; the message has a small program, as a test to paste.
        BadArgument: there is no such law.
        ImportError: Hypothesis is not installed.
    """
    unknown = [name for name in only if name not in LAWS]
    if unknown:
        raise BadArgument(
            "there is no such law", expected=", ".join(LAWS), found=", ".join(unknown)
        )
    names = tuple(only) or tuple(LAWS)
    held = passes or Passes()
    for name in names:
        law, shape, features = LAWS[name]
        strategy = strategy_of(shape, replace(features, focus=focus))
        search(partial(_hold, law, held), strategy, examples)
    return names


def _hold(law: Check, passes: Passes, drawn: tuple[Any, ...], seed: int) -> None:
    law(*drawn, seed, passes)


def strategy_of(shape: str, features: Features) -> SearchStrategy[tuple[Any, ...]]:
    """What is drawn, as the first arguments of a law."""
    try:
        from effax.testing import strategies
    except ImportError as error:
        raise ImportError("random programs need Hypothesis: install `hypothesis`") from error
    if shape == PAIRS:
        return strategies.compositions(features)
    if shape == REDUNDANT:
        return strategies.redundant_programs(features).map(lambda jaxpr: (jaxpr,))
    if shape == LINEAR:
        return strategies.linear_programs(replace(features, differentiable=False))
    return strategies.programs(features).map(lambda jaxpr: (jaxpr,))


def search(
    check: Callable[[Any, int], None],
    strategy: SearchStrategy[tuple[Any, ...]],
    examples: int,
) -> None:
    """Try a check on what is drawn; what breaks it is made small before it is reported."""
    from hypothesis import HealthCheck, given, settings

    from effax.testing.strategies import seeds

    @settings(
        max_examples=examples,
        report_multiple_bugs=False,
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(strategy, seeds)
    def holds(drawn: tuple[Any, ...], seed: int) -> None:
        check(drawn, seed)

    holds()
