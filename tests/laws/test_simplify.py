"""Laws of the passes that make programs smaller, and of the rules that they apply."""

from __future__ import annotations

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effax.ir.syntax import Jaxpr
from effax.passes import ALL, EXACT, SIMPLIFIES, Pass, fuse_accumulations, optimize, unroll_to
from effax.testing import laws
from effax.testing.strategies import ANYTHING, NUMERIC, programs, redundant_programs, seeds
from effax.transforms.optimize.rewrite import RewriteRule
from effax.transforms.optimize.simplify import RULES


@pytest.mark.parametrize("step", ALL, ids=str)
@given(st.data(), seeds)
def test_each_pass(step: Pass, data: st.DataObject, seed: int) -> None:
    """p(f) = f in all that is observed, p(p(f)) = p(f), |p(f)| <= |f|"""
    assert set(step.laws) == set(SIMPLIFIES if step is fuse_accumulations else EXACT)
    jaxpr: Jaxpr = data.draw(redundant_programs(NUMERIC))
    laws.pass_keeps_its_guarantees(jaxpr, seed, step)


@given(programs(ANYTHING), seeds)
def test_all_passes_on_all_dtypes(jaxpr: Jaxpr, seed: int) -> None:
    """p(f) = f in all that is observed, for every pass p"""
    laws.pass_keeps_its_guarantees(jaxpr, seed)


@given(redundant_programs(NUMERIC), seeds)
def test_the_pipeline(jaxpr: Jaxpr, seed: int) -> None:
    """optimize(f) = f in all that is observed, optimize(optimize(f)) = optimize(f)"""
    laws.pass_keeps_its_guarantees(jaxpr, seed, optimize, EXACT)


@given(programs(NUMERIC), seeds)
def test_loops_written_out(jaxpr: Jaxpr, seed: int) -> None:
    """unroll(f) = f in all that is observed, however much it may grow"""
    laws.pass_keeps_its_guarantees(jaxpr, seed, unroll_to(60))


@pytest.mark.parametrize("rule", RULES, ids=attrgetter("name"))
def test_rule(rule: RewriteRule) -> None:
    """left(x) = right(x), bit by bit"""
    laws.rule_is_sound(rule)
