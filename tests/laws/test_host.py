from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import COMPILED, NUMERIC, programs, redundant_programs, seeds


@given(programs(NUMERIC), seeds)
def test_passes_keep_what_is_told(jaxpr: Jaxpr, seed: int) -> None:
    """log(p(f)(x)) = log(f(x))"""
    laws.passes_keep_what_is_told(jaxpr, seed)


@given(redundant_programs(NUMERIC), seeds)
def test_optimisations_keep_what_is_told(jaxpr: Jaxpr, seed: int) -> None:
    """log(p(f)(x)) = log(f(x))"""
    laws.optimisations_keep_what_is_told(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_derivatives_tell_of_primal_values_once(jaxpr: Jaxpr, seed: int) -> None:
    """log(jvp(f)(x, t)) = log(primal(f)(x)) = log(f(x)); log(linear(f)(t)) is empty"""
    laws.derivatives_keep_what_is_told(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_halves_tell_in_order_and_once(jaxpr: Jaxpr, seed: int) -> None:
    """log(known(x)) + log(unknown(r, y)) = log(f(x, y))"""
    laws.halves_keep_what_is_told(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_vmap_tells_of_every_lane(jaxpr: Jaxpr, seed: int) -> None:
    """log(vmap(f)(xs)) = log(f(x)) for each x of xs"""
    laws.vmap_tells_of_every_lane(jaxpr, seed)


@given(programs(COMPILED, steps=6), seeds)
def test_compiled_programs_tell_the_same(jaxpr: Jaxpr, seed: int) -> None:
    """log(compile(f)(x)) = log(f(x))"""
    laws.compiled_programs_tell_the_same(jaxpr, seed)
