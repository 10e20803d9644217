from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import NUMERIC, SMOOTH, compositions, programs, seeds


@given(programs(NUMERIC), seeds)
def test_keeps_values(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(f)(x, t) = (f(x), ...), and the same final contents of references"""
    laws.jvp_keeps_values(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_linear_in_tangents(jaxpr: Jaxpr, seed: int) -> None:
    """df(x)(a·s + b·t) = a·df(x)(s) + b·df(x)(t)"""
    laws.jvp_is_linear(jaxpr, seed)


@given(programs(SMOOTH), seeds)
def test_is_the_derivative(jaxpr: Jaxpr, seed: int) -> None:
    """df(x)(t) = lim (f(x + h·t) - f(x))/h, of results and of final contents"""
    laws.jvp_is_the_derivative(jaxpr, seed)


@given(compositions(SMOOTH), seeds)
def test_chain_rule(pair: tuple[Jaxpr, Jaxpr], seed: int) -> None:
    """d(g∘f)(x) = dg(f(x))∘df(x)"""
    laws.jvp_has_the_chain_rule(*pair, seed)
