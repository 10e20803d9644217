from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import COMPILED, programs, seeds


@given(programs(COMPILED, steps=6), seeds)
def test_agrees_with_evaluation(jaxpr: Jaxpr, seed: int) -> None:
    """compile(f)(x) = evaluate(f)(x), and the same is left in every reference"""
    laws.lowering_agrees_with_evaluation(jaxpr, seed)
