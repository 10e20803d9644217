from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import NUMERIC, programs, seeds


@given(programs(NUMERIC), seeds)
def test_is_jvp_in_two_programs(jaxpr: Jaxpr, seed: int) -> None:
    """(y, r) = primal(x), linear(r, t) = dy where (y, dy) = jvp(f)(x, t), references included"""
    laws.linearize_is_jvp(jaxpr, seed)
