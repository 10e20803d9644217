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
from effax.testing.laws.equivalence import check_same_meaning
from effax.testing.laws.law import law
from effax.transforms.framework.runner import unwrap


@law
def pass_keeps_its_guarantees(
    jaxpr: Jaxpr, seed: int = 0, step: AnyPass | None = None, guarantees: Sequence[Guarantee] = ()
) -> None:
    """p(f) is valid and has the types of f, and the pass p keeps its guarantees.

    Values are compared on ordinary inputs and on zeros of both signs, infinities and nan.

    Args:
        jaxpr: the program.
        seed: the seed of the inputs.
        step: the pass or composition; if None, all passes of the library.
        guarantees: the guarantees to check instead of those of the pass (``guarantees_of``).
    """
    if step is None:
        for one in ALL:
            check_guarantees(jaxpr, seed, one, one.laws)
        return
    check_guarantees(jaxpr, seed, step, guarantees or guarantees_of(step))


@law
def pass_is_a_function(jaxpr: Jaxpr, step: AnyPass) -> None:
    """f = g => p(f) = p(g), and f is unchanged."""
    copy = pickle.loads(pickle.dumps(jaxpr))
    first = unwrap(step(jaxpr))
    assert copy == jaxpr and str(copy) == str(jaxpr), f"{step} changes its input"
    second = unwrap(step(copy))
    assert first == second, (
        f"{step} returns different programs for equal ones:\n{diff(first, second)}"
    )


def check_guarantees(
    jaxpr: Jaxpr, seed: int, step: AnyPass, guarantees: Sequence[Guarantee]
) -> None:
    """Check :func:`pass_keeps_its_guarantees` as part of another law."""
    once = unwrap(verified(step, jaxpr, step(jaxpr)))
    more = [e for e in once.effects if e not in jaxpr.effects]
    writes = {e.ref for e in jaxpr.effects if isinstance(e, Write)}
    # A load, a sum and a store may be fused into an accumulation.
    more = [e for e in more if not (isinstance(e, Accum) and e.ref in writes)]
    assert not more, f"{step} adds effects: {', '.join(map(str, more))}\n{once}"
    exact = Guarantee.SAME_BITS in guarantees
    if exact or Guarantee.SAME_MEANING in guarantees:
        check_same_meaning(jaxpr, once, seed, exact)
    if Guarantee.IDEMPOTENT in guarantees:
        twice = unwrap(step(once))
        assert twice == once, (
            f"a second run of {step} changes the program again:\n{diff(once, twice)}"
        )
    if Guarantee.NEVER_LARGER in guarantees:
        assert size(once) <= size(jaxpr), f"{step} makes the program grow:\n{once}"
