"""Bounds of evaluations in checks: programs that do not end are named, and others are compared."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import ClassVar

import numpy as np
import pytest

from effax import extend
from effax.ir import BadArgument, Unfinished, evaluate, parse
from effax.ir.eval.bounds import bounded_evaluation
from effax.ir.prims import Sin, While
from effax.ir.syntax import Jaxpr
from effax.passes import as_pass, dce
from effax.testing import Inconclusive, LawBroken, check_law, check_pass, check_primitive, law
from effax.testing.laws import pass_keeps_its_guarantees
from effax.testing.progress import Progress


def f32(x: float) -> np.ndarray:
    """Return a scalar in single precision."""
    return np.asarray(x, np.float32)


DOUBLING = parse("""{ lambda ; a:f32[]. let
    b:f32[] = while[
      cond={ lambda ; a:f32[]. let b:bool[] = lt a 1.0:f32[] in (b,) }
      body={ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[]; c:f32[] = sin b in (b,) }
      n_consts=0
    ] a
  in (b,) }""")
"""It does not end for numbers that are not positive."""


def test_a_run_is_stopped_at_a_number_of_equations() -> None:
    with bounded_evaluation(1000, 60) as meter:
        assert evaluate(DOUBLING, [f32(0.3)])[0] == np.float32(1.2)
    assert 5 < meter.steps < 20
    with (
        bounded_evaluation(1000, 60) as meter,
        pytest.raises(Unfinished, match="no end after 1000 equations"),
    ):
        evaluate(DOUBLING, [f32(0)])
    assert meter.is_spent
    with (
        bounded_evaluation(10**9, 0.05),
        pytest.raises(Unfinished, match=r"0\.05 seconds"),
    ):
        evaluate(DOUBLING, [f32(0)])


def test_meters_nest() -> None:
    with bounded_evaluation(1000, 60) as outer, bounded_evaluation(500, 60) as inner:
        evaluate(DOUBLING, [f32(0.3)])
    assert outer.steps == inner.steps


@pytest.mark.slow
def test_a_program_that_never_ends_is_named() -> None:
    begun = process_time()
    with pytest.raises(Inconclusive, match=r"no evaluation of the programs ended(.|\n)*max_steps"):
        check_pass(dce, programs=DOUBLING, examples=1, max_steps=500)
    assert process_time() - begun < 10
    with pytest.raises(LawBroken, match="did not end within its bounds"):
        pass_keeps_its_guarantees(DOUBLING, 0, dce, max_steps=500)


@pytest.mark.slow
def test_others_are_compared_and_the_report_says_so() -> None:
    other = parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos a in (b,) }")
    report = check_pass(dce, programs=[DOUBLING, other], examples=1, max_steps=500)
    assert report.stopped == 1
    assert "stopped: an evaluation of 1 program did not end within 500 equations" in str(report)


@as_pass
def endless(jaxpr: Jaxpr) -> Jaxpr:
    """Replace a condition by a true one."""
    eqn = jaxpr.eqns[0]
    assert isinstance(eqn.prim, While)
    cond = parse("{ lambda ; a:f32[]. let b:bool[] = eq 1.0:f32[] 1.0:f32[] in (b,) }")
    return jaxpr.replace(eqns=[eqn._replace(prim=While(cond, eqn.prim.body, 0))])


def test_a_pass_that_makes_a_program_endless_is_refused() -> None:
    ending = DOUBLING.eqns[0].prim.subjaxprs()[1]
    cond = parse("{ lambda ; a:f32[]. let b:bool[] = ne a a; c:bool[] = and b b in (c,) }")
    never = While(cond, ending, 0)
    jaxpr = DOUBLING.replace(eqns=[DOUBLING.eqns[0]._replace(prim=never)])
    with pytest.raises(LawBroken, match=r"does not end: it evaluates more than"):
        pass_keeps_its_guarantees(jaxpr, 0, endless, max_steps=2000)


@law
def endless_law(jaxpr: Jaxpr) -> None:
    """A law that evaluates a program without end."""
    evaluate(DOUBLING, [f32(0)])


def test_laws_of_users_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("effax.testing.laws.runner.MAX_STEPS", 50)
    with pytest.raises(BadArgument, match=r"(.|\n)*1 program stopped: an evaluation does not end"):
        check_law(endless_law, examples=1)


@dataclass(frozen=True, slots=True)
class Until(extend.RegionPrimitive):
    """``until(carry) -> carry``: the body as long as ``going`` is true."""

    going: Jaxpr
    body: Jaxpr
    name: ClassVar[str] = "until"

    def regions(self) -> tuple[extend.Region, ...]:
        return extend.while_regions(self.going, self.body)


@pytest.mark.slow
def test_a_primitive_is_not_run_where_it_does_not_end() -> None:
    loop = (
        parse("""{ lambda ; a:f32[]. let
        b:bool[] = gt a 1.0:f32[]
      in (b,) }"""),
        parse("{ lambda ; a:f32[]. let b:f32[] = mul a 0.5:f32[] in (b,) }"),
    )
    checked = check_primitive(
        Until(*loop), extend.array_type((), "float32"), seeds=(0,), max_steps=2000
    )
    assert "infinities" in checked.stopped
    assert "alone" not in checked.stopped
    assert "lowering_agrees_with_evaluation" in checked.passed
    assert "evaluations stopped after 2000 equations and 20 seconds" in str(checked)


@pytest.mark.slow
def test_a_primitive_that_never_ends_is_inconclusive() -> None:
    loop = (
        parse("""{ lambda ; a:f32[]. let
        b:bool[] = ne a 9.0:f32[]
      in (b,) }"""),
        parse("{ lambda ; a:f32[]. let b:f32[] = mul a 0.5:f32[] in (b,) }"),
    )
    with pytest.raises(Inconclusive, match="no evaluation of until ended"):
        check_primitive(Until(*loop), extend.array_type((), "float32"), seeds=(0,), max_steps=500)


def test_bounds_that_are_none_are_refused() -> None:
    with pytest.raises(BadArgument, match="the bounds of evaluations are not valid"):
        check_pass(dce, max_steps=0)
    with pytest.raises(BadArgument, match="the bounds of evaluations are not valid"):
        check_primitive(Sin(), extend.array_type((), "float32"), max_seconds=0)


def test_long_runs_report_their_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("effax.testing.progress.SECONDS", 0.0)
    Progress("check", 7).step(", 3 programs changed")
    Progress("check", 7, silent=True).step()
    assert capsys.readouterr().err == "check: 1 tries of about 7, 0 s, 3 programs changed\n"
