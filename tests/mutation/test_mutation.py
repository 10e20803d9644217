"""The laws catch what is wrong in rules: a few of the mutants that ``make mutate`` makes of all."""

from __future__ import annotations

import re
from typing import Final

import pytest

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.prims import AddUpdate
from effax.ir.types import array_type
from effax.testing.laws import LawBroken, Passes
from effax.testing.laws import jvp_is_the_derivative as derivative
from effax.transforms.rules.default import DEFAULT_RULES
from tests.mutation.mutants import Fault, Mutant, variants
from tests.mutation.run import Tally, judge, main, tally_of_rules

F: Final = array_type((3,), "float64")


def test_an_equation_has_variants() -> None:
    b = Builder([F, F])
    x, y = b.binders
    b(p.Sub(), x, y)
    b(p.Mul(), x, lit(2.0, F))
    first, second = ([str(v.prim.name) for v in variants(e) if v is not None] for e in b.eqns)
    assert first == ["add", "sub"]
    assert second == ["add", "mul"]


def test_a_mutant_is_caught_and_the_right_rule_is_not() -> None:
    b = Builder([F])
    jaxpr = b.finish([b(p.Sin(), *b.binders)])
    mutant = Mutant(p.Sin, "jvp", Fault(1, 0, False))
    with pytest.raises(LawBroken):
        derivative(jaxpr, 0, Passes(mutant.rules()))
    assert mutant.changed
    derivative(jaxpr, 0, Passes(DEFAULT_RULES))


def test_a_mutant_that_means_the_same_does_not_count() -> None:
    judged = [mutant for mutant, _ in judge(p.Copy, "jvp")]
    assert all(mutant.changed for mutant in judged)


def test_all_of_some_are_caught() -> None:
    smooth = ("magnitude", "straight_through")
    names = ("mul", "div", "sin", "select_n", "get", "addupdate", "reduce_prod", "jit")
    tallies = tally_of_rules((*names, *smooth))
    assert sum(tally.made for tally in tallies) > 60
    assert not [fault for tally in tallies for fault in tally.escaped]


def test_what_escapes_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neg"]) == 0
    assert "100.00 %" in capsys.readouterr().out
    assert str(Tally("jvp rules", 4, ["one"])).endswith("3 of     4 caught:  75.00 %")
    assert str(Mutant(AddUpdate, "batch", Fault(0, 1, True))) == (
        "the batch rule of addupdate, result 0: its elements are reversed"
    )
    mutant = Mutant(p.Sin, "jvp", Fault(1, 0, False))
    b = Builder([F])
    with pytest.raises(LawBroken):
        derivative(b.finish([b(p.Sin(), *b.binders)]), 0, Passes(mutant.rules()))
    what, change = str(mutant).split(": `", maxsplit=1)
    assert what == "the jvp rule of sin, equation 1"
    assert re.fullmatch(r".* = cos .*` became `.* = sin .*`", change)
