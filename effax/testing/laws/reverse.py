"""Laws of reverse mode in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from returns.result import Failure, Result

from effax.ir.analysis.check import check
from effax.ir.analysis.queries import walk
from effax.ir.errors import TransformError
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.prims import NewRef
from effax.ir.syntax import Jaxpr, renumbered
from effax.ir.types import RefType, is_inexact
from effax.testing.generate.features import SMOOTH
from effax.testing.generate.values import check_all, contents_of, random_inputs
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.law import law
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.simplify import count
from effax.testing.laws.transpose import random_cotangents
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.reverse.engine import Reverse, reverse
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.cotangent_spec import CotangentSpec, GradValue, NonLinear
from effax.transforms.transpose.engine import Transposed, transpose


@law(features=SMOOTH, of_primitives=True)
def reverse_is_linearize_then_transpose(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """(y, dx) = reverse(f)(x, dy) where (y, r) = primal(x), dx = transpose(linear)(r, dy).

    References included; with no more equations, none of them dead, but for the zeros that a sum in
    place may begin with where the other begins with its first part; and where one fails, so does
    the other, and says the same.
    """
    passes = passes or Passes()
    mask = tuple(
        has and not isinstance(t, RefType)
        for t, has in zip(jaxpr.in_types, differentiated(jaxpr.in_types, seed), strict=True)
    )
    rng = np.random.default_rng([seed, 8])
    wanted = tuple(is_inexact(t) and bool(rng.integers(0, 4)) for t in jaxpr.out_types)
    made = reverse(jaxpr, mask, wanted, passes.rules)
    both = _two_programs(passes, jaxpr, mask, wanted)
    if isinstance(both, Failure):
        assert isinstance(made, Failure), f"only reverse succeeds: {both.failure()}"
        assert made.failure().what == both.failure().what
        return
    parts, found = both.unwrap(), unwrap(made)
    _check_program(found.jaxpr)
    whole = sum(
        count(part.jaxpr if isinstance(part, Transposed) else part.primal) for part in parts
    )
    # Zeros, and the first part that is added to them.
    sums = sum(isinstance(place.eqn.prim, NewRef) for place in walk(found.jaxpr))
    assert count(found.jaxpr) <= whole + 2 * sums, f"more equations than {whole}:\n{found.jaxpr}"
    again = unwrap(reverse(jaxpr, mask, wanted, passes.rules))
    assert again.jaxpr == found.jaxpr, "equal inputs do not give equal programs"

    inputs = random_inputs(jaxpr.in_types, seed)
    types = [t for t, has in zip(jaxpr.out_types, wanted, strict=True) if has]
    cts = random_cotangents(types, seed)
    check_all(
        "result, cotangent or final content",
        _run_two(jaxpr, parts, wanted, inputs, cts),
        _run_one(jaxpr, found, inputs, cts),
    )


def _two_programs(
    passes: Passes, jaxpr: Jaxpr, mask: Mask, wanted: Mask
) -> Result[tuple[Linearized, Transposed], TransformError]:
    linear = linearize(jaxpr, mask, rules=passes.rules)
    if isinstance(linear, Failure):
        return linear
    done = linear.unwrap()
    ct_specs: list[CotangentSpec] = [
        *[NonLinear()] * len(done.residuals),
        *[GradValue()] * sum(mask),
    ]
    present = [w for w, has in zip(wanted, done.out_tangents, strict=True) if has]
    return transpose(done.linear, ct_specs, present, passes.rules).map(
        lambda pulled: (done, pulled)
    )


def _check_program(jaxpr: Jaxpr) -> None:
    check(jaxpr).unwrap()
    assert jaxpr == renumbered(jaxpr), f"not numbered in order of binding:\n{jaxpr}"
    alive = without_dead(jaxpr, DEFAULT_RULES)
    assert count(alive) == count(jaxpr), f"something dead remains:\n{jaxpr}"


def _run_two(
    jaxpr: Jaxpr,
    parts: tuple[Linearized, Transposed],
    wanted: Mask,
    inputs: Sequence[Value],
    cts: Sequence[Value],
) -> list[Value]:
    done, pulled = parts
    held = [np.array(x) for x in inputs]
    outs = evaluate(done.primal, held)
    residuals = [np.array(r.pick(held, outs)) for r in done.residuals]
    results = [np.array(x) for x in outs[: len(jaxpr.outs)]]
    rest = iter(cts)
    given = [next(rest) if has else None for has in wanted]
    present = [
        ct for ct, has in zip(given, done.out_tangents, strict=True) if has and ct is not None
    ]
    found = evaluate(pulled.jaxpr, [*residuals, *present])
    grads = _cotangents(jaxpr, done.in_tangents, pulled.nonzero, found)
    return [*results, *grads, *contents_of(jaxpr.in_types, held)]


def _run_one(
    jaxpr: Jaxpr, made: Reverse, inputs: Sequence[Value], cts: Sequence[Value]
) -> list[Value]:
    held = [np.array(x) for x in inputs]
    results = [np.array(x) for x in evaluate(made.jaxpr, [*held, *cts])]
    n = len(jaxpr.outs)
    grads = _cotangents(jaxpr, made.tangents, made.nonzero, results[n:])
    return [*results[:n], *grads, *contents_of(jaxpr.in_types, held)]


def _cotangents(jaxpr: Jaxpr, mask: Mask, nonzero: Mask, values: Sequence[Value]) -> list[Value]:
    """One an input with a tangent; those that are not given are zero."""
    types = [t for t, has in zip(jaxpr.in_types, mask, strict=True) if has]
    rest = iter(values)
    return [
        np.array(next(rest)) if has else np.zeros(t.shape, t.dtype)
        for t, has in zip(types, nonzero, strict=True)
    ]
