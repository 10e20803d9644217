from __future__ import annotations

import pytest

from effax.effects import Rule


def test_codes_are_distinct() -> None:
    assert len({rule.code for rule in Rule}) == len(Rule)


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.code)
def test_a_rule_has_the_forbidden_use_and_a_remedy(rule: Rule) -> None:
    assert rule.forbids
    assert rule.remedy
    assert rule.code == rule.code.lower()
    assert " " not in rule.code
