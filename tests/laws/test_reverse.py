from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing.laws.reverse import reverse_is_linearize_then_transpose
from effax.testing.strategies import NUMERIC, SMOOTH, programs, seeds

PURE = replace(SMOOTH, refs=False)


@given(programs(PURE), seeds)
def test_pure_programs(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(f)(x, dy) = transpose(linear)(r, dy), where there are no effects"""
    reverse_is_linearize_then_transpose(jaxpr, seed)


@given(programs(SMOOTH), seeds)
def test_differentiable_programs(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(f)(x, dy) = transpose(linear)(r, dy), references included"""
    reverse_is_linearize_then_transpose(jaxpr, seed)


@given(programs(NUMERIC), seeds)
def test_any_program(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(f)(x, dy) = transpose(linear)(r, dy), or both fail and say why"""
    reverse_is_linearize_then_transpose(jaxpr, seed)
