"""Laws of linearization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.testing.generate.features import NUMERIC
from effax.testing.generate.values import check_outcomes, random_inputs
from effax.testing.laws.jvp import (
    Pushed,
    check_tangents,
    differentiated,
    push,
    pushed,
    random_tangents,
)
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import linearize


def linearized_push(
    passes: Passes, jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Pushed:
    """Run the primal program, then the linear one; a missing tangent is zero."""
    made = unwrap(linearize(jaxpr, [t is not None for t in tangents], rules=passes.rules))
    primals = [np.array(x) for x in inputs]
    moved = [None if t is None else np.array(t) for t in tangents]
    results = evaluate(made.primal, primals)
    residuals = [r.pick(primals, results) for r in made.residuals]
    dots = evaluate(made.linear, [*residuals, *[t for t in moved if t is not None]])
    outs = [*results[: len(jaxpr.outs)], *dots]
    return pushed(jaxpr, primals, moved, outs, made.out_tangents)


@law(features=NUMERIC, of_primitives=True)
def linearize_is_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """(y, r) = primal(x), linear(r, t) = dy where (y, dy) = jvp(f)(x, t), references included."""
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    expected = push(passes, jaxpr, inputs, tangents)
    found = linearized_push(passes, jaxpr, inputs, tangents)
    check_outcomes(expected.values, found.values)
    check_tangents(expected.tangents, found.tangents)
