"""The law of dead code elimination."""

from __future__ import annotations

import numpy as np

from effax.ir.analysis.queries import size
from effax.ir.syntax import Jaxpr
from effax.testing.generate.values import Outcome, check_outcomes, random_inputs, run
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask


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
