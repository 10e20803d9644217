from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import ANYTHING, programs, seeds


@given(programs(ANYTHING), seeds)
def test_observationally_equal(jaxpr: Jaxpr, seed: int) -> None:
    """discharge(f)(x, contents) = (f(x), final contents), and no effect is left"""
    laws.discharge_is_observationally_equal(jaxpr, seed)


@given(programs(ANYTHING))
def test_idempotent(jaxpr: Jaxpr) -> None:
    """discharge(discharge(f)) = discharge(f)"""
    laws.discharge_of_pure_is_the_same(jaxpr)


@given(programs(replace(ANYTHING, refs=False)))
def test_identity_on_pure_programs(jaxpr: Jaxpr) -> None:
    """discharge(f) is f, the same object, where f mentions no reference"""
    laws.discharge_of_pure_is_the_same(jaxpr)
