"""The rules of a pass are tried on instances of their left sides."""

from __future__ import annotations

import pytest

from effax.ir.prims import And, Eq, Ge, Gt, Le, Lt, Ne, Or, Transpose
from effax.passes import Pass, as_pass, fixpoint, when
from effax.testing import LawBroken, check_pass
from effax.testing.pass_rules import MOST_RULES, programs_of_rules, rules_of
from effax.transforms import ANY, App, Hole, RewriteRule, rewriting, unwrap

x, y = Hole("x"), Hole("y")
EQUAL = RewriteRule("=", App(And, App(Ge, x, y), App(Le, x, y)), App(Eq, x, y), ANY)
UNEQUAL = RewriteRule("≠", App(Or, App(Gt, x, y), App(Lt, x, y)), App(Ne, x, y), ANY)
"""It is wrong where an operand is nan."""


@pytest.mark.slow
def test_a_rule_that_random_programs_lack_is_accepted() -> None:
    report = check_pass(Pass("equal", rewriting([EQUAL])), examples=3)
    assert report.changed and "eq" in report.kinds


@pytest.mark.slow
@pytest.mark.parametrize("rules", [[UNEQUAL], [EQUAL, UNEQUAL]])
def test_a_wrong_rule_that_random_programs_lack_is_refused(rules: list[RewriteRule]) -> None:
    with pytest.raises(LawBroken, match="nan"):
        check_pass(Pass("unequal", rewriting(rules)), examples=3)


def test_rules_of_compositions_are_found() -> None:
    one, two = Pass("equal", rewriting([EQUAL])), as_pass(rewriting([UNEQUAL]), name="unequal")
    plain = as_pass(lambda jaxpr: unwrap(rewriting([EQUAL])(jaxpr)), name="plain")
    whole = fixpoint(one | when(lambda jaxpr: True, two) | plain)
    assert rules_of(whole) == (EQUAL, UNEQUAL)
    assert len({*programs_of_rules(one)}) > 1


def test_what_has_no_instances_is_left_out() -> None:
    turned = RewriteRule("transpose", App(Transpose, x), x, ANY)
    assert [*programs_of_rules(Pass("transpose", rewriting([turned])))] == []
    many = [RewriteRule(f"{i}", EQUAL.left, EQUAL.right, ANY) for i in range(MOST_RULES + 1)]
    assert [*programs_of_rules(Pass("many", rewriting(many)))] == []
