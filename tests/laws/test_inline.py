from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import ANYTHING, programs, seeds


@given(programs(ANYTHING), seeds)
def test_keeps_what_is_observed(jaxpr: Jaxpr, seed: int) -> None:
    """inline(f) = f in all that is observed; idempotent, never larger"""
    laws.inline_keeps_what_is_observed(jaxpr, seed)
