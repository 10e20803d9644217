"""The laws of rules, with each kind of step in the middle of the programs in turn.

Among all that programs may contain, a kind of equation is rare; here every second one is of it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.generate.steps import step_names
from effax.testing.strategies import NUMERIC, SMOOTH, linear_programs, programs, seeds

each_step = pytest.mark.parametrize("step", step_names())
each_linear_step = pytest.mark.parametrize("step", step_names(linear=True))


@each_step
@given(st.data(), seeds)
def test_derivative(step: str, data: st.DataObject, seed: int) -> None:
    """df(x)(t) = lim (f(x + h·t) - f(x))/h"""
    jaxpr: Jaxpr = data.draw(programs(replace(SMOOTH, focus=step)))
    laws.jvp_is_the_derivative(jaxpr, seed)


@each_step
@given(st.data(), seeds)
def test_batch(step: str, data: st.DataObject, seed: int) -> None:
    """vmap(f)(xs) = stack(f(x) for x in xs)"""
    jaxpr: Jaxpr = data.draw(programs(replace(NUMERIC, focus=step)))
    laws.vmap_is_stacking(jaxpr, seed)


@each_step
@given(st.data(), seeds)
def test_partial_eval(step: str, data: st.DataObject, seed: int) -> None:
    """unknown(residuals(known(x)), y) = f(x, y)"""
    jaxpr: Jaxpr = data.draw(programs(replace(NUMERIC, focus=step)))
    laws.partial_eval_recomposes(jaxpr, seed)


@each_linear_step
@given(st.data(), seeds)
def test_adjoint(step: str, data: st.DataObject, seed: int) -> None:
    """<ct, f(x)> = <transpose(f)(ct), x>"""
    program = data.draw(linear_programs(replace(NUMERIC, focus=step)))
    laws.transpose_is_adjoint(*program, seed)


@pytest.mark.parametrize("step", ["scan", "while", "cond", "remat", "solve"])
@given(st.data(), seeds)
def test_reverse_mode(step: str, data: st.DataObject, seed: int) -> None:
    """<ct, df(x)(t)> = <vjp(f)(x)(ct), t>"""
    jaxpr: Jaxpr = data.draw(programs(replace(SMOOTH, focus=step)))
    laws.vjp_is_adjoint_to_jvp(jaxpr, seed)


@pytest.mark.parametrize(
    "step", ["refs.get", "refs.swap", "refs.addupdate", "scan", "while", "cond"]
)
@given(st.data(), seeds)
def test_discharge(step: str, data: st.DataObject, seed: int) -> None:
    """discharge(f)(x, contents) = (f(x), final contents)"""
    jaxpr: Jaxpr = data.draw(programs(replace(NUMERIC, focus=step)))
    laws.discharge_is_observationally_equal(jaxpr, seed)
