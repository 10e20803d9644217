"""Laws of linearisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, is_inexact
from effax.testing.generate.features import NUMERIC
from effax.testing.generate.values import Outcome, check_outcomes, contents_of, random_inputs
from effax.testing.laws.jvp import Pushed, check_tangents, differentiated, push, random_tangents
from effax.testing.laws.law import law
from effax.testing.laws.pass_set import Passes
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import linearize


def linearized_push(
    passes: Passes, jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Pushed:
    """Run the primal program, then the linear one; what has no tangent has a tangent of zero."""
    mask = [t is not None for t in tangents]
    made = unwrap(linearize(jaxpr, mask, rules=passes.rules))
    held = [np.array(x) for x in inputs]
    moved = [np.array(t) for t in tangents if t is not None]
    results = evaluate(made.primal, held)
    residuals = [r.pick(held, results) for r in made.residuals]
    values = Outcome(
        [np.array(y) for y in results[: len(jaxpr.outs)]], contents_of(jaxpr.in_types, held)
    )
    given = iter(evaluate(made.linear, [*residuals, *moved]))
    outs: list[Value | None] = []
    for a, has in zip(jaxpr.outs, made.out_tangents, strict=True):
        zero = np.zeros(a.type.shape, a.type.dtype) if is_inexact(a.type) else None
        outs.append(np.array(next(given)) if has else zero)
    rest = iter(moved)
    final = [next(rest) if has else None for has in mask]
    contents = [x for x, t in zip(final, jaxpr.in_types, strict=True) if isinstance(t, RefType)]
    return Pushed(values, outs, contents)


@law(features=NUMERIC, of_primitives=True)
def linearize_is_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """(y, r) = primal(x), linear(r, t) = dy where (y, dy) = jvp(f)(x, t), references included."""
    passes = passes or Passes()
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    expected = push(passes, jaxpr, inputs, tangents)
    found = linearized_push(passes, jaxpr, inputs, tangents)
    check_outcomes(expected.values, found.values)
    check_tangents([*expected.outs, *expected.contents], [*found.outs, *found.contents])
