"""Passes that are wrong at few places are refused by default; right ones are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from effax.ir import prims as p
from effax.ir.text.parser import parse
from effax.passes import Pass
from effax.testing import LawBroken, check_pass
from effax.testing.laws import pass_keeps_its_guarantees
from tests.planted import numeric_passes, subtle_passes
from tests.planted.subtle_passes import local

SOME = (
    *("closed_bound", "first_iteration", "reload", "shared_calls", "silent_branches"),
    *("clamped", "quiet_branches", "shallow_reload", "forgotten_index"),
)


@pytest.mark.parametrize("step", [w for w in subtle_passes.WRONG if w.name in SOME], ids=str)
@pytest.mark.slow
def test_a_wrong_pass_is_refused(step: Pass) -> None:
    """All are refused with the seeds 0 to 4: ``make mutate`` tries them."""
    with pytest.raises(LawBroken):
        check_pass(step, seed=subtle_passes.WRONG.index(step) % 5)


@pytest.mark.parametrize(("step", "given"), numeric_passes.WRONG[::2], ids=str)
@pytest.mark.slow
def test_a_wrong_pass_that_rounds_is_refused(step: Pass, given: dict[str, Any]) -> None:
    with pytest.raises(LawBroken):
        check_pass(step, **given)


@pytest.mark.parametrize(("step", "given"), numeric_passes.RIGHT[::3], ids=str)
@pytest.mark.slow
def test_a_right_pass_that_rounds_is_accepted(step: Pass, given: dict[str, Any]) -> None:
    report = check_pass(step, **given, examples=20)
    assert report.changed and not report.stopped


@pytest.mark.slow
def test_a_right_pass_of_calls_is_accepted() -> None:
    report = check_pass(subtle_passes.OF_CALLS, examples=40)
    assert report.changed > 3


DEEP = parse("""{ lambda ; a:f32[2]. let
    b:f32[] = scan[
      jaxpr={ lambda ; a:f32[] b:f32[]. let
          c:f32[] = sin b; d:f32[] = tanh c; e:f32[] = add d 1.5:f32[]; f:f32[] = div e e
          g:f32[] = add a f
        in (g,) }
      length=2
      n_carry=1
      n_consts=0
      reverse=False
      unroll=1
    ] 0.0:f32[] a
  in (b,) }""")


def ones(b: Any, eqn: Any) -> Any:
    """Rewrite x / x to 1, which is nan at 0: no input of the program reaches it."""
    same = isinstance(eqn.prim, p.Div) and eqn.ins[0] == eqn.ins[1]
    return b(p.IntegerPow(0), eqn.ins[0]) if same else None


@pytest.mark.slow
def test_special_values_reach_the_equation_that_is_changed() -> None:
    step = local(ones)
    for seed in range(3):
        assert step(DEEP).unwrap() != DEEP
        if seed:
            continue
    with pytest.raises(LawBroken) as broken:
        check_pass(step, programs=DEEP, examples=1)
    jaxpr = broken.value.arguments["jaxpr"]
    with pytest.raises(LawBroken):
        pass_keeps_its_guarantees(jaxpr, 0, step)  # type: ignore[arg-type]  # a program
