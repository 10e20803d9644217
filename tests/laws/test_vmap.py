from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import NUMERIC, SMOOTH, linear_programs, programs, seeds


@given(programs(NUMERIC), seeds)
def test_equals_stacking(jaxpr: Jaxpr, seed: int) -> None:
    """vmap(f)(xs) = stack(f(x) for x in xs), and the same in each lane's references"""
    laws.vmap_is_stacking(jaxpr, seed)


@given(programs(SMOOTH), seeds)
def test_commutes_with_jvp(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(vmap(f)) = vmap(jvp(f))"""
    laws.vmap_commutes_with_jvp(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_commutes_with_discharge(jaxpr: Jaxpr, seed: int) -> None:
    """discharge(vmap(f)) = vmap(discharge(f))"""
    laws.vmap_commutes_with_discharge(jaxpr, seed)


@given(linear_programs(), seeds)
def test_commutes_with_transpose(program: tuple[Jaxpr, tuple[bool, ...]], seed: int) -> None:
    """transpose(vmap(f)) = vmap(transpose(f))"""
    laws.vmap_commutes_with_transpose(*program, seed)
