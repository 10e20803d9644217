"""Rewrite rules that hold up to a tolerance, or where results are finite."""

from __future__ import annotations

import pytest

from effax.ir import parse
from effax.ir import prims as p
from effax.passes import Guarantee
from effax.testing import Inconclusive
from effax.testing.laws import LawBroken, rule_is_sound
from effax.transforms import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    App,
    Hole,
    IndexHole,
    Number,
    RewriteRule,
    Seq,
)

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


@pytest.mark.slow
def test_a_guarantee_that_is_none_is_refused() -> None:
    with pytest.raises(LawBroken, match="the guarantee of a rule is not valid"):
        rule_is_sound(INVERSE, guarantee=Guarantee.IDEMPOTENT)
    with pytest.raises(LawBroken, match="the guarantee of a rule is not valid"):
        rule_is_sound(INVERSE, guarantee=Guarantee.SAME_BITS, rtol=1e-2)


r, i = Hole("r"), IndexHole("i")
TWO = parse("{ lambda ; a:Ref{f32[]} b:f32[] c:f32[]. let a[...] <- b; a[...] <- c in () }")
OVER = Seq(App(p.Swap, r, x, i), App(p.Swap, r, y, i))
LAST = Seq(App(p.Swap, r, y, i))
ONE = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let a[...] <- b in () }")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (RewriteRule("b", OVER, LAST, samples=(ONE,)), "matches no equations"),
        (RewriteRule("c", OVER, LAST, INTEGERS, samples=(TWO,)), "not of int, uint"),
        (RewriteRule("d", OVER, LAST, where=lambda m: False, samples=(TWO,)), "the condition"),
    ],
    ids=lambda x: x.name if isinstance(x, RewriteRule) else "",
)
def test_it_is_said_why_a_rule_does_not_apply_to_its_sample(rule: RewriteRule, why: str) -> None:
    with pytest.raises(LawBroken, match=f"does not apply to its sample, since .*{why}"):
        rule_is_sound(rule)


def test_a_rule_that_nothing_tests_is_inconclusive() -> None:
    rule = RewriteRule("d", OVER, LAST, where=lambda m: False)
    with pytest.raises(Inconclusive, match=r"the rule d does not apply(.|\n)*the condition"):
        rule_is_sound(rule)
