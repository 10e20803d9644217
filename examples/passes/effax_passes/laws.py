"""Laws about passes, with tolerances, for ``effax.testing.check_law(law, step=pass)``.

`check_pass` tests that a pass keeps results. These laws test what else its user relies on: its
derivatives, its price, and what it must not touch.

>>> from effax.testing import LawBroken, check_law
>>> from effax_passes import algebra, narrow
>>> check_law(cheaper, step=algebra, examples=20).programs
20
>>> try:
...     check_law(cheaper, step=narrow, focus="contract.dot", examples=20)
... except LawBroken as broken:
...     print(broken.law.name)
cheaper
"""

from __future__ import annotations

from effax.ir import Eqn, Jaxpr, walk
from effax.passes import AnyPass, unwrap
from effax.testing import (
    NUMERIC,
    SMOOTH,
    Passes,
    assume,
    check_close,
    law,
    laws,
    random_inputs,
    special_inputs,
)
from effax_passes.algebra import price
from effax_passes.metrics import Metric


@law
def cheaper(jaxpr: Jaxpr, step: AnyPass) -> None:
    """price(p(f)) <= price(f)."""
    before, after = price(jaxpr), price(unwrap(step(jaxpr)))
    assert after <= before, f"the price rises from {before} to {after}"


@law(features=NUMERIC)
def close_where_finite(jaxpr: Jaxpr, seed: int, step: AnyPass, rtol: float = 1e-6) -> None:
    """|p(f)(x) - f(x)| <= rtol |f(x)| where f is finite, at special values too."""
    made = unwrap(step(jaxpr))
    for inputs in [random_inputs(jaxpr.in_types, seed), *special_inputs(jaxpr.in_types, seed)]:
        check_close(jaxpr, made, inputs, rtol=rtol, where_finite=True)


@law(features=SMOOTH)
def derivatives_are_close(
    jaxpr: Jaxpr, seed: int, step: AnyPass, passes: Passes, rtol: float = 1e-5
) -> None:
    """|d p(f)(x)(t) - df(x)(t)| <= rtol |df(x)(t)| where df is finite."""
    mask = [t.dtype.kind == "f" for t in jaxpr.in_types]
    before, after = passes.jvp(jaxpr, mask), passes.jvp(unwrap(step(jaxpr)), mask)
    # A tangent that is zero in one of them is no result of it.
    assume(before.out_tangents == after.out_tangents)
    inputs = random_inputs(before.jaxpr.in_types, seed)
    check_close(before.jaxpr, after.jaxpr, inputs, rtol=rtol, where_finite=True)


def _observed(eqn: Eqn) -> list[Metric]:
    return [effect for effect in eqn.effects if isinstance(effect, Metric)]


@law
def metrics_are_not_results(jaxpr: Jaxpr, seed: int, step: AnyPass) -> None:
    """p(f)(x) = f(x), references included, and p(f) has no metrics."""
    made = unwrap(step(jaxpr))
    assert not any(_observed(place.eqn) for place in walk(made)), f"a metric is left:\n{made}"
    laws.observationally_equal(jaxpr, made, seed)
