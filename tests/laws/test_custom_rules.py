"""Calls with rules that say the truth: every law holds of programs that have them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import NUMERIC, SMOOTH, linear_programs, programs, seeds
from tests.laws.trying import holds

CONTROL = ("jit", "remat", "cond", "scan", "while", "custom")
RULED = replace(NUMERIC, control=CONTROL, focus="custom")
DERIVED = replace(SMOOTH, control=CONTROL, focus="custom", refs=False)
REVERSED = replace(DERIVED, control=("jit", "remat", "cond", "scan", "custom"))
OF_REFS = replace(
    REVERSED, refs=True, control=(*REVERSED.control, "custom_vjp"), focus="custom_vjp"
)


@settings(max_examples=12)
@given(programs(DERIVED), seeds)
def test_forward_derivatives(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(f)(x, dx) = (f(x), lim (f(x + h dx) - f(x)) / h), linear in dx"""
    laws.jvp_keeps_values(jaxpr, seed)
    laws.jvp_is_the_derivative(jaxpr, seed)


@settings(max_examples=12)
@given(programs(REVERSED), seeds)
def test_reverse_derivatives(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(f)(x, dy) = transpose(linear)(r, dy); linearize(f) = jvp(f)"""
    laws.reverse_is_linearize_then_transpose(jaxpr, seed)


@settings(max_examples=12)
@given(programs(OF_REFS), seeds)
def test_cotangents_of_references(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(f)(x, dy) = transpose(linear)(r, dy), where calls with rules read references"""
    laws.reverse_is_linearize_then_transpose(jaxpr, seed)


test_true_rules = holds(laws.true_rules_keep_derivatives)


@settings(max_examples=12)
@given(programs(RULED), seeds)
def test_vmap(jaxpr: Jaxpr, seed: int) -> None:
    """vmap(f)(xs) = stack(f(x) for x in xs)"""
    laws.vmap_is_stacking(jaxpr, seed)


@settings(max_examples=12)
@given(programs(DERIVED), seeds)
def test_vmap_of_derivatives(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(vmap(f)) = vmap(jvp(f))"""
    laws.vmap_commutes_with_jvp(jaxpr, seed)


@settings(max_examples=12)
@given(programs(RULED), seeds)
def test_dead_code(jaxpr: Jaxpr, seed: int) -> None:
    """dce(f) does what f does, once is enough, and is never larger; discharge(f) does so too"""
    laws.dce_is_observationally_equal(jaxpr, seed)
    laws.discharge_is_observationally_equal(jaxpr, seed)


@settings(max_examples=12)
@given(programs(RULED), seeds)
def test_partial_eval(jaxpr: Jaxpr, seed: int) -> None:
    """unknown(known(x), y) = f(x, y)"""
    laws.partial_eval_recomposes(jaxpr, seed)


@settings(max_examples=12)
@given(linear_programs(replace(NUMERIC, control=CONTROL, focus="custom", refs=False)), seeds)
def test_linear_calls(program: tuple[Jaxpr, tuple[bool, ...]], seed: int) -> None:
    """<transpose(f) y, x> = <y, f x>"""
    laws.transpose_is_adjoint(*program, seed)
