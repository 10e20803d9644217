"""The focus of random programs, and the slices around equations that a pass changes."""

from __future__ import annotations

import pytest

from effax.effects import Read, Write
from effax.ir import parse, walk
from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.errors import BadArgument
from effax.ir.prims import Scan, Transpose, While
from effax.ir.syntax import Jaxpr, Var
from effax.ir.types import array_type
from effax.passes import cse, dce
from effax.testing import Inconclusive, check_law, check_pass, law
from effax.testing.generate.catalogue import catalogue, literals
from effax.testing.generate.focus import focus_of, primitives_of, steps_of
from effax.testing.laws.rules import MANY
from effax.testing.shrink.slices import (
    cut_out,
    lifted,
    slices_of,
    with_length,
    with_other_parts,
)
from effax.transforms import FLOATS, App, Hole, RewriteRule

x = Hole("x")
RARE = RewriteRule("sin(erf(x)) = x", App(p.Sin, App(p.Erf, x)), x, FLOATS)


def reads_what_no_equation_writes(jaxpr: Jaxpr) -> bool:
    """Return whether a loop reads a reference that the program does not write."""
    written = {e.ref for e in jaxpr.effects if isinstance(e, Write)}
    return any(
        isinstance(eqn.prim, Scan | While)
        and any(isinstance(e, Read) and eqn.ins[e.ref] in jaxpr.binders for e in eqn.effects)
        and not any(jaxpr.binders[w] in eqn.ins for w in written)
        for eqn in jaxpr.eqns
    )


def impossible(jaxpr: Jaxpr) -> bool:
    """Return False."""
    return False


@pytest.mark.slow
def test_a_class_with_parameters_is_a_kind_of_step() -> None:
    assert steps_of("transpose") == ("shape.transpose",)
    assert primitives_of("reduce.extremum") == {"reduce_max", "reduce_min"}
    assert focus_of(Transpose).names == ("shape.transpose",)
    assert focus_of(p.Sin).patterns and focus_of(Scan).names == ("scan",)
    report = check_pass(cse, focus=[Transpose, Scan, RARE], examples=10)
    met = dict(report.focus)
    assert list(met) == ["transpose", "scan", "sin(erf(x)) = x"] and min(met.values()) >= 2
    assert f"focus: transpose in {met['transpose']}, scan in" in str(report)


@pytest.mark.slow
def test_a_predicate_is_met_often() -> None:
    report = check_pass(cse, focus=reads_what_no_equation_writes, examples=10)
    ((name, met),) = report.focus
    assert name == "reads_what_no_equation_writes" and met >= 5

    @law
    def looped(jaxpr: Jaxpr) -> None:
        """The program meets the predicate."""
        assert any(isinstance(place.eqn.prim, Scan | While) for place in walk(jaxpr))

    check_law(looped, focus=reads_what_no_equation_writes, seed=3, examples=3)


@pytest.mark.slow
def test_a_predicate_that_is_never_met() -> None:
    with pytest.raises(Inconclusive, match="no program meets the focus impossible"):
        check_pass(dce, focus=impossible, examples=1)
    with pytest.raises(BadArgument, match="does not return a boolean"):
        check_pass(dce, focus=lambda jaxpr: None, examples=1)  # type: ignore[arg-type]  # the test is about this


PROGRAM = parse("""{ lambda ; a:f32[] b:Ref{f32[]}. let
    c:f32[] = exp a
    d:f32[] = sin c
    e:f32[] = neg d
    f:f32[] = neg e
    b[...] += f
    g:f32[] = scan[
      jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b; d:f32[] = neg c in (d,) }
      length=3
      n_carry=1
      n_consts=1
      reverse=False
      unroll=1
    ] d f
  in (g,) }""")


def test_changed_equations_are_cut_out() -> None:
    assert str(cut_out(PROGRAM, [2, 3])) == (
        "{ lambda ; a:f32[]. let b:f32[] = neg a; c:f32[] = neg b in (c,) }"
    )
    after = PROGRAM.replace(
        eqns=[*PROGRAM.eqns[:3], PROGRAM.eqns[3]._replace(prim=p.Copy()), *PROGRAM.eqns[4:]]
    )
    found = [[eqn.prim.name for eqn in one.eqns] for one in slices_of([(PROGRAM, after)])]
    assert found == [["neg"], ["neg", "neg"], ["sin", "neg", "neg"]]


def test_slices_are_lifted_and_loops_shortened() -> None:
    many = lifted(cut_out(PROGRAM, [1, 2]))
    assert many is not None and many.in_types[0].shape == (MANY,)
    assert lifted(cut_out(PROGRAM, [5])) is None
    loop = cut_out(PROGRAM, [5])
    lengths = [with_length(loop, n) for n in (0, 1, 3)]
    assert [one.eqns[0].prim.length if one else None for one in lengths] == [0, 1, None]  # type: ignore[attr-defined]  # of a scan


STORES = parse("""{ lambda ; a:Ref{f32[3]} b:f32[3] c:f32[] d:f32[3]. let
    a[...] <- b
    e:f32[3] = exp d
    f:f32[] <- a[1]
    a[...] <- e
  in (f,) }""")


def test_accesses_are_cut_out_together_and_at_other_parts() -> None:
    without = STORES.replace(eqns=STORES.eqns[1:])
    found = [[eqn.prim.name for eqn in one.eqns] for one in slices_of([(STORES, without)])]
    assert ["swap", "get", "swap"] in found
    texts = [str(one) for one in with_other_parts(STORES)]
    assert any("a[...] <- b" in text and "a[0] <- " in text for text in texts)
    assert any(" <- a[...]" in text for text in texts)


def test_equations_of_literals_are_in_the_catalogue() -> None:
    greatest = lit(2**31 - 1, array_type((), "int32"))
    found = [eqn.prim for jaxpr in literals() for eqn in jaxpr.eqns if eqn.ins == (greatest,) * 2]
    assert p.Add() in found and p.Mul() in found


@pytest.mark.slow
def test_a_rule_with_parameters_is_met_in_the_programs_of_the_caller() -> None:
    rule = RewriteRule("sum(exp(x)) = sum(x)", App(p.ReduceSum, App(p.Exp, x)), x, FLOATS)
    with pytest.raises(BadArgument, match="has parameters, without them"):
        focus_of(rule)
    program = parse("""{ lambda ; a:f32[3]. let
        b:f32[3] = exp a; c:f32[] = reduce_sum[axes=(0,)] b in (c,) }""")
    report = check_pass(cse, programs=program, focus=rule, examples=5)
    ((name, met),) = report.focus
    assert name == rule.name and met > 5


@pytest.mark.slow
def test_the_catalogue_has_all_pairs() -> None:
    names = {
        (by_var[first].prim.name, eqn.prim.name)
        for jaxpr in catalogue()
        for by_var in [{v: eqn for eqn in jaxpr.eqns for v in eqn.outs}]
        for eqn in jaxpr.eqns
        for first in eqn.ins[:1]
        if isinstance(first, Var) and first in by_var
    }
    assert {("neg", "neg"), ("exp", "log"), ("sub", "gt"), ("transpose", "transpose")} <= names
