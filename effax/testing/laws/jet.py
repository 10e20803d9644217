"""Laws of Taylor mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.testing.generate.features import NUMERIC
from effax.testing.generate.values import largest, random_inputs
from effax.testing.laws.jvp import check_tangents, differentiated, pushed, random_tangents
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap
from effax.transforms.jet import jet


@law(features=NUMERIC, of_primitives=True)
def jet_is_iterated_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """jet(f)(x, s, t) = (f(x), df(x)(s), d²f(x)(s, s)/2 + df(x)(t)), references discharged."""
    pure = passes.discharge(jaxpr).jaxpr
    inputs = random_inputs(pure.in_types, seed)
    mask = differentiated(pure.in_types, seed)
    s, t = (random_tangents(pure.in_types, mask, seed + i) for i in range(2))
    expected = _twice(passes, pure, inputs, (s, t), mask)
    made = unwrap(jet(pure, mask, 2, rules=passes.rules))
    moved = [x for pair in zip(s, t, strict=True) for x in pair if x is not None]
    results = evaluate(made.jaxpr, [*inputs, *moved])
    n = len(pure.outs)
    for k in range(2):
        outs = [*results[:n], *results[n + k :: 2]]
        found = pushed(pure, inputs, s, outs, made.out_series).outs
        scale = max([float(largest(x)) for x in expected[k] if x is not None], default=0.0)
        check_tangents(expected[k], found, scale)


def _twice(
    passes: Passes,
    jaxpr: Jaxpr,
    inputs: Sequence[Value],
    series: tuple[Sequence[Value | None], Sequence[Value | None]],
    mask: Mask,
) -> list[list[Value | None]]:
    """Return the coefficients of order 1 and 2 by forward mode of forward mode.

    Along (s, 2·t) the derivative of df(x)(s) is d²f(x)(s, s) + 2·df(x)(t).
    """
    s, t = ([x for x in xs if x is not None] for xs in series)
    once = passes.jvp(jaxpr, mask)
    again = passes.jvp(once.jaxpr, (*mask, *[True] * len(s)))
    results = evaluate(again.jaxpr, [*inputs, *s, *s, *[np.asarray(2 * x, x.dtype) for x in t]])
    n, m = len(jaxpr.outs), len(once.jaxpr.outs)
    first = pushed(jaxpr, inputs, series[0], results[:m], once.out_tangents).outs
    moved = iter(results[m:])
    found = {i: next(moved) for i, has in enumerate(again.out_tangents) if has}
    of_tangents = iter(range(n, m))
    second: list[Value | None] = []
    for x, has in zip(first, once.out_tangents, strict=True):
        at = next(of_tangents) if has else None
        zero = None if x is None else np.zeros_like(x)
        second.append(zero if at not in found else np.asarray(found[at] / 2, found[at].dtype))
    return [first, second]
