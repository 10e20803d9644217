from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import ANYTHING, programs, seeds


@given(programs(ANYTHING), seeds)
def test_keeps_what_is_observed(jaxpr: Jaxpr, seed: int) -> None:
    """dce(f, used) = f on used results and on every reference; idempotent, never larger"""
    laws.dce_keeps_what_is_observed(jaxpr, seed)
