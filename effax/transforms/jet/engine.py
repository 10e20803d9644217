"""Taylor mode: a program over the coefficients of power series in one variable.

Before::

    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }

After, to order 2, with ``a + a1·t + a2·t²``::

    { lambda ; a:f32[] b:f32[] c:f32[]. let
        d:f32[] = mul a a
        e:f32[] = mul a b
        f:f32[] = mul b a
        ...
      in (d, h, l) }

A product has the rule of Cauchy, and loops have rules on their bodies. The rule of any other
primitive follows from that of forward mode: with y' = J(x)·x', the coefficient k + 1 of y is that
of order k of J(x)·x', divided by k + 1, and J(x)·x' is a program of primitives to which the same
applies, to an order less. An equation that repeats an earlier one is its result.

Source: Griewank and Walther, "Evaluating Derivatives" (2008), 13.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.errors import TransformError
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleBuilder, RuleSet
from effax.transforms.jet.rules import RULES
from effax.transforms.jet.series import Taylor, constant_series, primal
from effax.transforms.jvp import check_tangents
from effax.transforms.rules.common.arrays import zeros


class Jet(NamedTuple):
    """The result of :func:`jet`.

    Attributes:
        jaxpr: ``(*primals, *coefficients of inputs with a series) -> (*primals, *coefficients of
            results with one)``: those of order 1 up to the last, of one input after another.
        out_series: which results have a series.
    """

    jaxpr: Jaxpr
    out_series: Mask


def _jet(jaxpr: Jaxpr, series: Mask, order: int, instantiate: Mask, rules: RuleSet) -> Jet:
    check_tangents(jaxpr, series)
    if order < 0:
        raise TransformError("a series has an order", "0 or more", str(order))
    b = RuleBuilder(rules, jaxpr.in_types)
    taylor = Taylor(b, rules, RULES, _nested)
    given = [
        (v, *[b.bind(tangent_type(v.type)) for _ in range(order)])
        if has
        else constant_series(v, order)
        for v, has in zip(tuple(b.binders), series, strict=True)
    ]
    outs = taylor.run(jaxpr, given, order)
    forced = instantiate or (False,) * len(outs)
    primals = [primal(out) for out in outs]
    found = tuple(
        is_inexact(t) and (force or any(c is not None for c in out[1:]))
        for t, out, force in zip(jaxpr.out_types, outs, forced, strict=True)
    )
    coefficients = [
        _of_type(taylor, c, tangent_type(first.type))
        for first, out, has in zip(primals, outs, found, strict=True)
        if has
        for c in out[1:]
    ]
    return Jet(b.finish([*primals, *coefficients]), found)


@jaxpr_pass(_jet, maxsize=1024)
def jet(
    jaxpr: Jaxpr,
    series: Sequence[bool],
    order: int,
    instantiate: Sequence[bool] = (),
    rules: RuleSet | None = None,
) -> Jet:
    """Map power series to power series, up to an order.

    Type:     (a..., b...) -> c  =>  (a..., b..., order·a...) -> (c, order·c)     a has a series
    Effects:  none; the program has no references.
    Laws:     tests/laws/test_jet.py
    Raises:   TransformError: the program has effects on values with a series, or a rule is missing.
    Source:   Griewank and Walther, "Evaluating Derivatives" (2008), 13.

    Args:
        jaxpr: the program.
        series: one entry an input: whether it has coefficients of higher order.
        order: the last order.
        instantiate: for which results zeros are returned where there is no series; none by default.
        rules: the rules; the registered ones where it is None.
    """
    return _jet(jaxpr, tuple(series), order, tuple(instantiate), rules_or_default(rules))


def _nested(jaxpr: Jaxpr, series: Mask, order: int, instantiate: Mask, rules: RuleSet) -> Jaxpr:
    return jet.cached(jaxpr, series, order, instantiate, rules).jaxpr


def _of_type(taylor: Taylor, c: Atom | None, type_: Type) -> Atom:
    return zeros(taylor.b, type_) if c is None else taylor.typed(c, type_)
