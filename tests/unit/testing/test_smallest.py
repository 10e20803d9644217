"""Reports are minimal, and contain the program with its calls."""

from __future__ import annotations

import re

import numpy as np
import pytest

from effax.ir import Eqn, evaluate, map_eqns
from effax.ir.build import Builder
from effax.ir.prims import DebugCallback
from effax.ir.syntax import Jaxpr
from effax.passes import as_pass
from effax.testing import NUMERIC, LawBroken, check_law, law, laws, random_inputs
from effax.transforms.framework.dead_code import used_variables


@law(features=NUMERIC)
def results_are_small(jaxpr: Jaxpr, seed: int) -> None:
    """No result is above 1.3."""
    inputs = [np.array(x) for x in random_inputs(jaxpr.in_types, seed)]
    for x in evaluate(jaxpr, inputs):
        assert x.dtype.kind != "f" or not np.any(x > 1.3), "a result is large"


@pytest.mark.parametrize("focus", ["scan", "cond", "refs.get", "while"])
def test_no_input_is_left_that_nothing_uses(focus: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_law(results_are_small, focus=focus)
    jaxpr = caught.value.arguments["jaxpr"]
    assert isinstance(jaxpr, Jaxpr)
    assert {v.id for v in jaxpr.binders} <= used_variables(jaxpr), str(jaxpr)


def without_calls(b: Builder, eqn: Eqn) -> tuple[()] | None:
    return () if isinstance(eqn.prim, DebugCallback) else None


@as_pass
def silent(jaxpr: Jaxpr) -> Jaxpr:
    """All calls of the host go."""
    return map_eqns(without_calls, jaxpr)


def test_calls_are_shown_in_the_program_that_makes_them() -> None:
    with pytest.raises(LawBroken) as caught:
        check_law(laws.pass_preserves_side_effects, step=silent)
    text = str(caught.value)
    (name,) = re.findall(r"expected (debug\d+)\n", text)
    shown = text.partition("In the program with calls of the host:")[2].partition("As a test:")[0]
    assert f"callback=@{name}" in shown and "{ lambda ;" in shown
