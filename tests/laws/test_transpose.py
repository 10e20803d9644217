from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import SMOOTH, linear_programs, programs, seeds

Linear = tuple[Jaxpr, tuple[bool, ...]]


@given(linear_programs(), seeds)
def test_adjoint(program: Linear, seed: int) -> None:
    """<ct, f(x)> = <transpose(f)(ct), x>, where x and f(x) include what references hold"""
    laws.transpose_is_adjoint(*program, seed)


@given(linear_programs(), seeds)
def test_own_inverse(program: Linear, seed: int) -> None:
    """transpose(transpose(f)) = f"""
    laws.transpose_is_its_own_inverse(*program, seed)


@given(linear_programs(), seeds)
def test_accumulates(program: Linear, seed: int) -> None:
    """GradRef: the reference ends with what it held, plus the result of GradValue"""
    laws.transpose_adds_into_references(*program, seed)


@given(linear_programs(), seeds)
def test_unwanted(program: Linear, seed: int) -> None:
    """DontWant: the other cotangents are the same, and no work is added"""
    laws.transpose_leaves_out_what_nobody_wants(*program, seed)


@given(programs(SMOOTH), seeds)
def test_vjp_is_adjoint_to_jvp(jaxpr: Jaxpr, seed: int) -> None:
    """<ct, df(x)(t)> = <vjp(f)(x)(ct), t>"""
    laws.vjp_is_adjoint_to_jvp(jaxpr, seed)
