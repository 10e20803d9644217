"""Laws tried on random programs with one call."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest
from returns.result import Success

from effax.ir import prims as p
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.testing import check_laws, laws
from effax.testing.laws import LawBroken, Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.optimize.dce import Dce, dce
from effax.transforms.rules.common.pointwise import mul, unary_jvp
from effax.transforms.rules.default import DEFAULT_RULES


@pytest.mark.slow
def test_the_library_keeps_every_law() -> None:
    tried = check_laws(examples=3)
    assert [one.law for one in tried] == [law.name for law in laws.LAWS if law.takes("passes")]
    assert not [one for one in tried if one.refused]


def test_the_table_has_every_law() -> None:
    declared = [value for value in vars(laws).values() if isinstance(value, laws.Law)]
    assert {law.name for law in declared} == {law.name for law in laws.LAWS} < set(laws.__all__)
    assert len(laws.LAWS) == len({law.name for law in laws.LAWS})


@pytest.mark.slow
def test_a_wrong_rule_is_found_and_made_small() -> None:
    # d sin(x) = x·dx
    wrong = replace(
        DEFAULT_RULES.rules[p.Sin], jvp=partial(unary_jvp, lambda b, d, x, y: mul(b, d, x))
    )
    rules = DEFAULT_RULES.extend(p.Sin, wrong)
    with pytest.raises(LawBroken) as broken:
        check_laws(Passes(rules), only=["jvp_is_the_derivative"], focus="math.smooth", examples=200)
    text = str(broken.value)
    found = re.search(r"parse\('''\n(.*?)'''\)", text, re.DOTALL)
    assert found is not None and "As a test:" in text
    program = parse(found[1])
    assert len(program.eqns) <= 3
    assert any(isinstance(eqn.prim, p.Sin) for eqn in program.eqns)


@pytest.mark.slow
def test_a_wrong_pass_is_found() -> None:
    def lazy(jaxpr: Jaxpr, used: Mask) -> Dce:
        made = dce(jaxpr, used)
        assert isinstance(made, Success)
        right: Dce = made.unwrap()
        # It forgets what is done to references.
        kept = [eqn for eqn in right.jaxpr.eqns if eqn.outs or not eqn.effects.effects]
        return Dce(right.jaxpr.replace(eqns=kept), right.used_ins)

    passes = replace(Passes(), dce=lazy)
    with pytest.raises(LawBroken, match="dce_is_observationally_equal"):
        check_laws(passes, only=["dce_is_observationally_equal"], examples=100)


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"unknown law(.|\n)*found: +nonsense"):
        check_laws(only=["nonsense"])
