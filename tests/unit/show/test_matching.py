"""Matching of the equations of two programs."""

from __future__ import annotations

import pytest
from hypothesis import given

from effax.ir.edit.alpha import renumbered
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.show.matching import changed_counts, compare_programs
from effax.testing.strategies import ANYTHING, programs
from effax.transforms.optimize.dce import dce


@given(programs(ANYTHING))
def test_equal_programs_share_everything(jaxpr: Jaxpr) -> None:
    assert compare_programs(jaxpr, jaxpr) == ({}, {})
    assert compare_programs(jaxpr, renumbered(jaxpr)) == ({}, {})
    assert changed_counts(jaxpr, jaxpr) == "the same primitives"


@pytest.mark.slow
@given(programs(ANYTHING))
def test_dce_adds_no_equation(jaxpr: Jaxpr) -> None:
    small = dce(jaxpr, [i == 0 for i in range(len(jaxpr.outs))]).unwrap().jaxpr
    found = compare_programs(jaxpr, small)
    assert len(found.before) - len(found.after) == len(jaxpr.eqns) - len(small.eqns)
    if not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns):
        # A freeze with an unused result becomes a free.
        assert all(small.eqns[i].prim.name == "free_ref" for i in found.after)


def test_a_changed_equation_does_not_mark_those_after_it() -> None:
    first = parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b; d:f32[] = exp c in (d,) }"
    )
    second = parse(
        "{ lambda ; a:f32[]. let b:f32[] = cos a; c:f32[] = mul b b; d:f32[] = exp c in (d,) }"
    )
    assert compare_programs(first, second) == ({0: "gone"}, {0: "new"})
    assert changed_counts(first, second) == "cos +1, sin −1"


def test_equal_computations_match_in_any_order() -> None:
    first = parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b; d:f32[] = mul b c in (d,) }"
    )
    second = parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b in (c,) }")
    # The first sine is kept, the second one is removed, though both have one kind.
    assert compare_programs(first, second) == ({1: "gone"}, {})


def test_reads_before_and_after_a_write_are_not_the_same() -> None:
    once = parse("{ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...]; a[...] <- 0.0:f32[] in (b,) }")
    twice = parse(
        "{ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...]; a[...] <- 0.0:f32[]; "
        "d:f32[] <- a[...] in (b, d) }"
    )
    assert compare_programs(once, twice) == ({}, {2: "new"})
