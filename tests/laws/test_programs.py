"""Laws of programs as values, and those that hold for every pass."""

from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import ANYTHING, linear_programs, programs, seeds


@given(programs(ANYTHING))
def test_check_accepts(jaxpr: Jaxpr) -> None:
    """check(f) = f, where f is well typed by construction"""
    laws.check_accepts(jaxpr)


@given(linear_programs())
def test_check_accepts_linear(program: tuple[Jaxpr, tuple[bool, ...]]) -> None:
    """check(f) = f, where f is well typed by construction"""
    laws.check_accepts(program[0])


@given(programs(ANYTHING), seeds)
def test_check_rejects(jaxpr: Jaxpr, seed: int) -> None:
    """check(f with a fault) = that kind of fault"""
    laws.check_rejects(jaxpr, seed)


@given(programs(ANYTHING))
def test_parse_inverts_print(jaxpr: Jaxpr) -> None:
    """parse(str(f)) = f"""
    laws.parse_inverts_print(jaxpr)


@given(programs(ANYTHING))
def test_equality_is_structural(jaxpr: Jaxpr) -> None:
    """copy(f) = f, hash(copy(f)) = hash(f), renumbered(f) ≡ f"""
    laws.equality_is_structural(jaxpr)


@given(programs(ANYTHING), seeds)
def test_passes_are_pure(jaxpr: Jaxpr, seed: int) -> None:
    """f = g => p(f) = p(g); p(f) is valid; f is as it was"""
    laws.passes_are_pure(jaxpr, seed)
