"""The laws of one pass: its guarantees, and that it is a function."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from effax.effects import Accum, Write
from effax.ir.analysis.diff import diff
from effax.ir.analysis.queries import size
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee
from effax.passes.library import ALL
from effax.passes.pipeline import AnyPass, guarantees_of
from effax.passes.watch import verified
from effax.testing.generate.values import MAX_SECONDS, MAX_STEPS, limited
from effax.testing.laws.equivalence import Agreement, check_same_meaning
from effax.testing.laws.law import law
from effax.testing.laws.tolerance import Allowed, Tolerances
from effax.transforms.framework.runner import unwrap


@law
def pass_keeps_its_guarantees(
    jaxpr: Jaxpr,
    seed: int = 0,
    step: AnyPass | None = None,
    guarantees: Sequence[Guarantee] = (),
    rtol: Allowed | None = None,
    atol: Allowed | None = None,
    max_steps: int = MAX_STEPS,
    max_seconds: float = MAX_SECONDS,
) -> None:
    """p(f) is valid and has the types of f, and the pass p keeps its guarantees.

    Values are compared on ordinary inputs and on zeros of both signs, infinities and nan.

    Args:
        jaxpr: the program.
        seed: the seed of the inputs.
        step: the pass or composition; if None, all passes of the library.
        guarantees: the guarantees to check instead of those of the pass (``guarantees_of``).
        rtol: the relative tolerance of results (``check_close``), a number or one by dtype.
        atol: the absolute tolerance, likewise.
        max_steps: the bound of evaluated equations, of each run.
        max_seconds: the bound of the time.
    """
    tolerance = None if rtol is None and atol is None else Tolerances(rtol, atol)
    with limited(max_steps, max_seconds):
        for one in ALL if step is None else (step,):
            check_guarantees(jaxpr, seed, one, guarantees or guarantees_of(one), tolerance)


@law
def pass_is_a_function(jaxpr: Jaxpr, step: AnyPass) -> None:
    """f = g => p(f) = p(g), and f is unchanged."""
    check_function(jaxpr, step)


class NotAFunction(AssertionError):
    """A pass changes its input, or returns different programs for equal ones."""


def check_function(jaxpr: Jaxpr, step: AnyPass) -> Jaxpr:
    """Check :func:`pass_is_a_function`; return p(f)."""
    copy = pickle.loads(pickle.dumps(jaxpr))
    first = unwrap(step(jaxpr))
    if copy != jaxpr or str(copy) != str(jaxpr):
        raise NotAFunction(f"{step} changes its input")
    second = unwrap(step(copy))
    if first != second:
        raise NotAFunction(
            f"{step} returns different programs for equal ones:\n{diff(first, second)}"
        )
    return first


def check_guarantees(
    jaxpr: Jaxpr,
    seed: int,
    step: AnyPass,
    guarantees: Sequence[Guarantee],
    tolerance: Tolerances | None = None,
) -> None:
    """Check :func:`pass_keeps_its_guarantees` as part of another law."""
    once = unwrap(verified(step, jaxpr, step(jaxpr)))
    more = [e for e in once.effects if e not in jaxpr.effects]
    writes = {e.ref for e in jaxpr.effects if isinstance(e, Write)}
    # A load, a sum and a store may be fused into an accumulation.
    more = [e for e in more if not (isinstance(e, Accum) and e.ref in writes)]
    assert not more, f"{step} adds effects: {', '.join(map(str, more))}\n{once}"
    agreement = agreement_of(guarantees, tolerance)
    if agreement is not None:
        check_same_meaning(jaxpr, once, seed, agreement)
    if Guarantee.IDEMPOTENT in guarantees:
        twice = unwrap(step(once))
        assert twice == once, (
            f"a second run of {step} changes the program again:\n{diff(once, twice)}"
        )
    if Guarantee.NEVER_LARGER in guarantees:
        assert size(once) <= size(jaxpr), f"{step} makes the program grow:\n{once}"


def agreement_of(
    guarantees: Sequence[Guarantee], tolerance: Tolerances | None = None
) -> Agreement | None:
    """Return how closely a program and its result agree by the guarantees; None: not at all."""
    if Guarantee.SAME_BITS in guarantees:
        return Agreement(exact=True)
    if Guarantee.SAME_MEANING in guarantees:
        return Agreement(tolerance=tolerance)
    if Guarantee.SAME_WHERE_FINITE in guarantees:
        return Agreement(tolerance=tolerance, where_finite=True)
    return None
