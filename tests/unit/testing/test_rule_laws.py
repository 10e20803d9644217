"""Rewrite rules that hold up to a tolerance, or where results are finite."""

from __future__ import annotations

import pytest

from effax.ir import prims as p
from effax.passes import Guarantee
from effax.testing.laws import LawBroken, rule_is_sound
from effax.transforms import COMPLEX, FLOATS, App, Hole, Number, RewriteRule

x, y, z = Hole("x"), Hole("y"), Hole("z")
FINITE = Guarantee.SAME_WHERE_FINITE
INVERSE = RewriteRule("log(exp(x)) = x", App(p.Log, App(p.Exp, x)), x, FLOATS)
RECIPROCAL = RewriteRule(
    "x / 3 = x · (1/3)",
    App(p.Div, x, Number(3)),
    App(p.Mul, x, Number(1 / 3)),
    frozenset({"float"}),
)
QUARTERS = RewriteRule(
    "x / 2 = x / 3", App(p.Div, x, Number(2)), App(p.Mul, x, Number(0.25)), FLOATS
)
SQUARES = RewriteRule("x·x = square(x)", App(p.Mul, x, x), App(p.Square, x), COMPLEX)


def test_a_rule_may_round_otherwise() -> None:
    rule_is_sound(INVERSE, guarantee=FINITE, atol=1e-1, rtol=1e-2)
    for wanted in ({}, {"guarantee": Guarantee.SAME_MEANING}):
        with pytest.raises(LawBroken):
            rule_is_sound(INVERSE, **wanted)  # type: ignore[arg-type]  # one or none


def test_a_wrong_rule_is_refused_within_a_tolerance() -> None:
    with pytest.raises(LawBroken, match=r"is allowed(.|\n)*guarantee=Guarantee.SAME_WHERE_FINITE"):
        rule_is_sound(QUARTERS, guarantee=FINITE, rtol=1e-2)


def test_tolerances_are_by_dtype() -> None:
    exact = {"float32": 0.0, "float64": 0.0}
    with pytest.raises(LawBroken):
        rule_is_sound(QUARTERS, rtol=exact)


def test_random_values_are_tried() -> None:
    # Few special values show it: products of complex numbers round in another order.
    with pytest.raises(LawBroken):
        rule_is_sound(SQUARES)


def test_a_guarantee_that_is_none_is_refused() -> None:
    with pytest.raises(LawBroken, match="the guarantee of a rule is not valid"):
        rule_is_sound(INVERSE, guarantee=Guarantee.IDEMPOTENT)
    with pytest.raises(LawBroken, match="the guarantee of a rule is not valid"):
        rule_is_sound(INVERSE, guarantee=Guarantee.SAME_BITS, rtol=1e-2)
