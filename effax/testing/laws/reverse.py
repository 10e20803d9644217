"""The law of fused reverse mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from returns.result import Failure, Result

from effax.ir.analysis.check import check
from effax.ir.analysis.queries import size, walk
from effax.ir.edit.alpha import renumbered
from effax.ir.errors import TransformError
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.prims import NewRef
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, is_inexact
from effax.testing.generate.features import SMOOTH
from effax.testing.generate.values import check_all, contents_of, random_inputs, with_zeros
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes
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
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """(y, dx) = reverse(f)(x, dy) where (y, r) = primal(x), dx = transpose(linear)(r, dy).

    Both agree on references, and fail with the same message. The fused program has no dead
    equation, and no more equations but for the initial zeros of sums in place.
    """
    mask = tuple(
        has and not isinstance(t, RefType)
        for t, has in zip(jaxpr.in_types, differentiated(jaxpr.in_types, seed), strict=True)
    )
    rng = np.random.default_rng([seed, 8])
    wanted = tuple(is_inexact(t) and bool(rng.integers(0, 4)) for t in jaxpr.out_types)
    made = reverse(jaxpr, mask, wanted, passes.rules)
    both = _composed(passes, jaxpr, mask, wanted)
    if isinstance(both, Failure):
        assert isinstance(made, Failure), f"only the fused form succeeds: {both.failure()}"
        assert made.failure().what == both.failure().what
        return
    parts, found = both.unwrap(), unwrap(made)
    _check_program(found.jaxpr)
    whole = sum(size(part.jaxpr if isinstance(part, Transposed) else part.primal) for part in parts)
    # A sum in place begins with zeros, to which the first part is added.
    sums = sum(isinstance(place.eqn.prim, NewRef) for place in walk(found.jaxpr))
    assert size(found.jaxpr) <= whole + 2 * sums, f"more equations than {whole}:\n{found.jaxpr}"
    again = unwrap(reverse(jaxpr, mask, wanted, passes.rules))
    assert again.jaxpr == found.jaxpr, "equal inputs yield different programs"

    inputs = random_inputs(jaxpr.in_types, seed)
    cts = random_cotangents(_selected(jaxpr.out_types, wanted), seed)
    check_all(
        "result, cotangent or final content",
        _run_composed(jaxpr, parts, wanted, inputs, cts),
        run_fused(jaxpr, found, inputs, cts),
    )


def _composed(
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
    assert size(alive) == size(jaxpr), f"dead code remains:\n{jaxpr}"


def _run_composed(
    jaxpr: Jaxpr,
    parts: tuple[Linearized, Transposed],
    wanted: Mask,
    inputs: Sequence[Value],
    cts: Sequence[Value],
) -> list[Value]:
    done, pulled = parts
    buffers = [np.array(x) for x in inputs]
    outs = evaluate(done.primal, buffers)
    residuals = [np.array(r.pick(buffers, outs)) for r in done.residuals]
    results = [np.array(x) for x in outs[: len(jaxpr.outs)]]
    moved = [has for has, want in zip(done.out_tangents, wanted, strict=True) if want]
    present = [ct for ct, has in zip(cts, moved, strict=True) if has]
    found = evaluate(pulled.jaxpr, [*residuals, *present])
    grads = with_zeros(_selected(jaxpr.in_types, done.in_tangents), pulled.nonzero, found)
    return [*results, *grads, *contents_of(jaxpr.in_types, buffers)]


def run_fused(
    jaxpr: Jaxpr, made: Reverse, inputs: Sequence[Value], cts: Sequence[Value]
) -> list[Value]:
    """Return the results, the cotangents of differentiated inputs, and the final contents."""
    buffers = [np.array(x) for x in inputs]
    results = [np.array(x) for x in evaluate(made.jaxpr, [*buffers, *cts])]
    n = len(jaxpr.outs)
    grads = with_zeros(_selected(jaxpr.in_types, made.tangents), made.nonzero, results[n:])
    return [*results[:n], *grads, *contents_of(jaxpr.in_types, buffers)]


def _selected(types: Sequence[Type], mask: Mask) -> list[Type]:
    return [t for t, has in zip(types, mask, strict=True) if has]
