"""Which equations two programs share."""

from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr, renumbered
from effax.ir.text.parser import parse
from effax.show.matching import changes_told, compare_programs
from effax.testing.strategies import ANYTHING, programs
from effax.transforms.optimize.dce import dce


@given(programs(ANYTHING))
def test_equal_programs_share_everything(jaxpr: Jaxpr) -> None:
    assert compare_programs(jaxpr, jaxpr) == ({}, {})
    assert compare_programs(jaxpr, renumbered(jaxpr)) == ({}, {})
    assert changes_told(jaxpr, jaxpr) == "the same primitives"


@given(programs(ANYTHING))
def test_what_dce_leaves_was_there_before(jaxpr: Jaxpr) -> None:
    small = dce(jaxpr, [i == 0 for i in range(len(jaxpr.outs))]).unwrap().jaxpr
    found = compare_programs(jaxpr, small)
    assert len(found.before) - len(found.after) == len(jaxpr.eqns) - len(small.eqns)
    if not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns):
        # Where a reference was consumed for an unused result, it is freed instead.
        assert all(small.eqns[i].prim.name == "free_ref" for i in found.after)


def test_a_changed_equation_does_not_mark_those_after_it() -> None:
    first = parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b; d:f32[] = exp c in (d,) }"
    )
    second = parse(
        "{ lambda ; a:f32[]. let b:f32[] = cos a; c:f32[] = mul b b; d:f32[] = exp c in (d,) }"
    )
    assert compare_programs(first, second) == ({0: "gone"}, {0: "new"})
    assert changes_told(first, second) == "cos +1, sin −1"


def test_what_computes_the_same_is_found_wherever_it_stands() -> None:
    first = parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b; d:f32[] = mul b c in (d,) }"
    )
    second = parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b in (c,) }")
    # The first sine stays; the one of the sine goes, though the kind of both is one.
    assert compare_programs(first, second) == ({1: "gone"}, {})


def test_reads_before_and_after_a_write_are_not_the_same() -> None:
    once = parse("{ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...]; a[...] <- 0.0:f32[] in (b,) }")
    twice = parse(
        "{ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...]; a[...] <- 0.0:f32[]; "
        "d:f32[] <- a[...] in (b, d) }"
    )
    assert compare_programs(once, twice) == ({}, {2: "new"})
