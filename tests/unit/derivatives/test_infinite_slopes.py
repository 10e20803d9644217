"""Infinite slopes: of functions that are constant near a point, and of others, which are nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, nn
from effax.ir.eval.numpy import evaluate
from effax.ir.text.parser import parse
from effax.transforms.jvp import jvp
from effax.transforms.reverse.engine import reverse
from tests.unit.lowering.compiled import run

Function = Callable[[Any], Any]

CONSTANT: dict[str, tuple[Function, float, float]] = {
    "sqrt of relu": (lambda x: jnp.sqrt(nn.relu(x)), -10.0, 4.0),
    "sqrt of maximum": (lambda x: jnp.sqrt(jnp.maximum(x, 0.0)), -10.0, 4.0),
    "sqrt of maximum, the other order": (lambda x: jnp.sqrt(jnp.maximum(0.0, x)), -10.0, 4.0),
    "sqrt of where": (lambda x: jnp.sqrt(jnp.where(x > 0, x, 0.0)), -1.0, 4.0),
    "arcsin of clip": (lambda x: jnp.arcsin(jnp.clip(x, -1.0, 1.0)), 2.0, 0.5),
    "arccos of clamp": (lambda x: jnp.arccos(lax.clamp(-1.0, x, 1.0)), -2.0, 0.5),
    "arccosh of maximum": (lambda x: jnp.arccosh(jnp.maximum(x, 1.0)), 0.5, 3.0),
}
"""Functions with a point near which they are constant, and one where they are not."""

OTHERS: dict[str, tuple[Function, float, float, float]] = {
    "sqrt(x) ** 2": (lambda x: jnp.sqrt(x) ** 2, 0.0, 1.0, 0.0),
    "x * sqrt(x)": (lambda x: x * jnp.sqrt(x), 0.0, 0.0, np.inf),
    "exp(log(x))": (lambda x: jnp.exp(jnp.log(x)), 0.0, 1.0, 0.0),
    "exp(log(x ** 3) / 3)": (lambda x: jnp.exp(jnp.log(x**3) / 3), 0.0, 1.0, 0.0),
    "cbrt(x ** 3)": (lambda x: jnp.cbrt(x**3), 0.0, 1.0, 0.0),
    "power(x ** 3, 1 / 3)": (lambda x: jnp.power(x**3, 1 / 3), 0.0, 1.0, 0.0),
    "sqrt(x ** 4)": (lambda x: jnp.sqrt(x**4), 0.0, 0.0, 2.0),
    "sqrt(x ** 6)": (lambda x: jnp.sqrt(x**6), 0.0, 0.0, 0.0),
    "sqrt(x * x) ** 2": (lambda x: jnp.sqrt(x * x) ** 2, 0.0, 0.0, 2.0),
    "sqrt of a selected square": (
        lambda x: jnp.sqrt(jnp.where(x < 1, x**4, 1.0)) * 3,
        0.0,
        0.0,
        6.0,
    ),
    "1 - arcsin(1 - x ** 4)": (lambda x: 1 - jnp.arcsin(1 - x**4), 0.0, 0.0, 2 * 2**0.5),
    **{name: (f, at, 0.0, 0.0) for name, (f, at, _) in CONSTANT.items()},
}
"""Functions at a point, with their derivatives."""


def pushed(f: Function) -> Function:
    return lambda x: effax.jvp(f, (x,), (jnp.ones_like(x),))[1]


@pytest.mark.parametrize("name", CONSTANT)
def test_a_function_that_is_constant_near_a_point_has_the_derivative_0(name: str) -> None:
    f, flat, steep = CONSTANT[name]
    points = np.array([flat, steep], np.float32)
    slope = float(effax.grad(f)(steep))
    assert np.isfinite(slope) and slope
    for derivative in (pushed(f), effax.grad(f)):
        assert float(derivative(flat)) == 0.0
        batched: Any = effax.vmap(derivative)
        for each in (batched, effax.jit(batched)):
            np.testing.assert_allclose(each(points), [0.0, slope], rtol=1e-6)
    jacobian: Any = effax.jacfwd(f)
    np.testing.assert_allclose(jacobian(points), np.diag([0.0, slope]), rtol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_derivatives_at_infinite_slopes_are_right_or_nan(name: str) -> None:
    f, x, slope, bend = OTHERS[name]
    first: list[Function] = [pushed(f), effax.grad(f), effax.jit(pushed(f))]
    second = [
        outer(inner) for outer in (pushed, effax.grad) for inner in (pushed(f), effax.grad(f))
    ]
    for derivatives, right in ((first, slope), (second, bend)):
        for derivative in derivatives:
            found = float(derivative(x))
            assert np.isnan(found) or found == pytest.approx(right, abs=1e-6)


TEXT = "{ lambda ; a:f32[4] b:f32[4]. let c:f32[4] = strong_zero_mul a b in (c,) }"
TANGENTS = np.array([0.0, -0.0, 0.0, 2.0], np.float32)
SLOPES = np.array([np.inf, -np.inf, np.nan, np.inf], np.float32)


def test_a_strong_zero_times_any_number_is_0() -> None:
    program = parse(TEXT)
    for found in (evaluate(program, [TANGENTS, SLOPES]), run(program, [TANGENTS, SLOPES])):
        np.testing.assert_array_equal(found[0], [0, 0, 0, np.inf])


def test_the_slope_and_cotangents_are_multiplied_as_usual() -> None:
    zeros, ones = np.zeros(4, np.float32), np.ones(4, np.float32)
    of_slope = jvp(parse(TEXT), [False, True]).unwrap().jaxpr
    _, found = evaluate(of_slope, [zeros, ones, SLOPES])
    np.testing.assert_array_equal(found, np.full(4, np.nan))
    pulled = reverse(parse(TEXT), [True, False]).unwrap().jaxpr
    assert "strong_zero_mul" not in str(pulled.eqns[-1])
    _, ct = evaluate(pulled, [TANGENTS, SLOPES, zeros])
    np.testing.assert_array_equal(ct, np.full(4, np.nan))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_an_extremum_that_no_element_equals_has_the_derivative_nan(name: str) -> None:
    """XLA may compute elements for the comparison again, rounded otherwise; and nan equals none."""
    program = parse(f"{{ lambda ; a:f32[3]. let b:f32[] = {name}[axes=(0,)] a in (b,) }}")
    x, ones = np.array([1.0, 2.0, 2.0], np.float32), np.ones(3, np.float32)
    for made, t in ((jvp(program, [True]), ones), (reverse(program, [True]), ones[0])):
        jaxpr = made.unwrap().jaxpr
        other = parse(str(jaxpr).replace(" eq a ", " gt 0.0:f32[] "))
        assert other != jaxpr
        for found in (evaluate(other, [x, t]), run(other, [x, t]), run(jaxpr, [x * np.nan, t])):
            assert np.isnan(found[1]).all()
        assert np.isfinite(evaluate(jaxpr, [x, t])[1]).all()


@pytest.mark.slow
def test_tangents_that_an_extremum_does_not_return_are_not_multiplied() -> None:
    """Infinite tangents of other elements do not make the tangent nan."""
    x, dx = jnp.array([0.0, 4.0, 1.0]), jnp.array([np.inf, 0.25, np.nan])
    for f in (jnp.max, lambda x: jnp.maximum(x[0], x[1]), lambda x: lax.cummax(x)[1]):
        g: Any = f
        for push in (effax.jvp, effax.jit(effax.jvp, static_argnums=0)):
            assert float(push(g, (x,), (dx,))[1]) == 0.25
