from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import ANYTHING, NUMERIC, programs, seeds


@given(programs(ANYTHING), seeds)
def test_halves_recompose(jaxpr: Jaxpr, seed: int) -> None:
    """unknown(residuals(known(x)), y) = f(x, y): results, references, types, order of effects"""
    laws.partial_eval_recomposes(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_all_or_nothing_known(jaxpr: Jaxpr, seed: int) -> None:
    """All known: the unknown half is empty. Nothing known: the known half touches nothing"""
    laws.partial_eval_of_all_or_nothing(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_halves_recompose_under_a_policy(jaxpr: Jaxpr, seed: int) -> None:
    """The same, where some of what is known may not be kept; no effect is repeated"""
    laws.partial_eval_under_a_policy_recomposes(jaxpr, seed)
