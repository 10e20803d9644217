"""Laws of passes that simplify programs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np

from effax.effects import Accum, Write
from effax.ir.analysis.diff import diff
from effax.ir.analysis.queries import size
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee
from effax.passes.library import ALL
from effax.passes.pipeline import AnyPass, guarantees_of
from effax.passes.watch import verified
from effax.testing.generate.values import Outcome, check_outcomes, random_inputs, run
from effax.testing.laws.equivalence import check_same_meaning
from effax.testing.laws.law import About, law
from effax.testing.laws.pass_set import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap


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


def used_results(jaxpr: Jaxpr, seed: int) -> Mask:
    """Return the mask of the used results: random ones; all for seed 0."""
    rng = np.random.default_rng(seed)
    return tuple(bool(seed == 0 or rng.integers(0, 3)) for _ in jaxpr.outs)


@law(of_primitives=True)
def dce_is_observationally_equal(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """dce(f, used) = f on the used results and on every reference; idempotent, never larger."""
    used = used_results(jaxpr, seed)
    made, used_ins = passes.dce(jaxpr, used)
    assert made.in_types == jaxpr.in_types, f"inputs are lost:\n{made}"
    inputs = random_inputs(jaxpr.in_types, seed)
    whole = run(jaxpr, inputs)
    wanted = [x for x, flag in zip(whole.outs, used, strict=True) if flag]
    check_outcomes(Outcome(wanted, whole.contents), run(made, inputs))
    _check_unused_do_not_matter(made, used_ins, inputs, seed)
    again = passes.dce(made, (True,) * len(made.outs)).jaxpr
    assert again == made, f"a second run changes the program again:\n{made}\n{again}"
    assert size(made) <= size(jaxpr), f"the program is larger:\n{made}"


def _check_unused_do_not_matter(
    jaxpr: Jaxpr, used_ins: Mask, inputs: list[np.ndarray], seed: int
) -> None:
    """Raise Differs if another value of an unused input changes a result."""
    others = random_inputs(jaxpr.in_types, seed + 1)
    mixed = [x if used else y for x, y, used in zip(inputs, others, used_ins, strict=True)]
    check_outcomes(Outcome(run(jaxpr, inputs).outs, []), Outcome(run(jaxpr, mixed).outs, []))


@law(of_primitives=True)
def inline_is_observationally_equal(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """inline(f) = f, observationally; idempotent, never larger."""
    check_simplifies(passes.inline, jaxpr, seed)


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
