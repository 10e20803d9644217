"""Laws of two programs that are equal, and of functions that simplify programs."""

from __future__ import annotations

from collections.abc import Callable

from effax.ir.analysis.queries import size
from effax.ir.syntax import Jaxpr
from effax.testing.generate.values import check_outcomes, random_inputs, run
from effax.testing.laws.law import About, law


@law(about=About.EXPLICIT)
def observationally_equal(first: Jaxpr, second: Jaxpr, seed: int = 0) -> None:
    """Two programs return equal results, and leave equal contents in every reference.

    Args:
        first: the expected program.
        second: the other one, on the same inputs.
        seed: the seed of the inputs.
    """
    check_equal_programs(first, second, seed)


def check_equal_programs(first: Jaxpr, second: Jaxpr, seed: int) -> None:
    """Check :func:`observationally_equal` as part of another law."""
    assert first.in_types == second.in_types, (
        f"the inputs have other types: expected {first.in_types}, found {second.in_types}"
    )
    inputs = random_inputs(first.in_types, seed)
    check_outcomes(run(first, inputs), run(second, inputs))


@law(about=About.EXPLICIT)
def simplifies(
    simplify: Callable[[Jaxpr], Jaxpr],
    jaxpr: Jaxpr,
    seed: int = 0,
) -> None:
    """p(f) is observationally equal to f, p(p(f)) = p(f), |p(f)| <= |f|.

    Args:
        simplify: the pass.
        jaxpr: the program.
        seed: the seed of the inputs.
    """
    check_simplifies(simplify, jaxpr, seed)


def check_simplifies(simplify: Callable[[Jaxpr], Jaxpr], jaxpr: Jaxpr, seed: int) -> None:
    """Check :func:`simplifies` as part of another law."""
    once = simplify(jaxpr)
    check_equal_programs(jaxpr, once, seed)
    twice = simplify(once)
    assert twice == once, f"a second run changes the program again:\n{once}\n{twice}"
    assert size(once) <= size(jaxpr), f"the program is larger:\n{once}"
