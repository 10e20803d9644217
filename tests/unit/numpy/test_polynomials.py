"""Polynomials, against NumPy, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped

untyped: Any = jnp
A, B = np.array([2.0, -1.0, 0.5, 3.0], np.float32), np.array([1.0, 4.0], np.float32)
LONG = np.linspace(-1, 1, 40).astype(np.float32)
X = np.array([[0.5, -2.0], [1.0, 0.0]], np.float32)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "polyval": (lambda m, p, x: m.polyval(p, x), (A, X)),
    "polyval of many": (lambda m, p, x: m.polyval(p, x), (LONG, X / 2)),
    "polyval of none": (lambda m, p, x: m.polyval(p[:0], x), (A, X)),
    "polyadd": (lambda m, p, q: m.polyadd(p, q), (A, B)),
    "polysub": (lambda m, p, q: m.polysub(q, p), (A, B)),
    "polymul": (lambda m, p, q: m.polymul(p, q), (A, B)),
    "polymul of a number": (lambda m, p: m.polymul(p, 2.0), (A,)),
    "polydiv": (lambda m, p, q: m.polydiv(p, q)[0], (A, B)),
    "polydiv by a longer one": (lambda m, p, q: m.polydiv(q, p)[0], (A, B)),
    "polyder": (lambda m, p: m.polyder(p, 2), (A,)),
    "polyder of a constant": (lambda m, p: m.polyder(p[:1]), (A,)),
    "polyint": (lambda m, p: m.polyint(p, 2, m.array([1.0, 2.0])), (A,)),
    "polyint of one constant": (lambda m, p: m.polyint(p, 3, 1.5), (A,)),
    "vander": (lambda m, x: m.vander(x, 4, increasing=True), (A,)),
    "vander of none": (lambda m, x: m.vander(x, 0), (A,)),
    "poly": (lambda m, x: m.poly(x), (A,)),
}


@pytest.mark.parametrize("name", CASES)
def test_polynomials_are_those_of_numpy(name: str) -> None:
    f, args = CASES[name]
    expected = f(np, *args)
    for run in (lambda *a: f(untyped, *a), effax.jit(lambda *a: f(untyped, *a))):
        found = run(*map(jnp.asarray, args))
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
        assert found.shape == expected.shape


def test_a_remainder_keeps_the_size_of_the_dividend() -> None:
    quotient, rest = effax.jit(jnp.polydiv)(A, B)
    np.testing.assert_allclose(rest[-1:], np.polydiv(A, B)[1], rtol=1e-6)
    assert quotient.shape == (3,) and rest.shape == (4,) and not np.asarray(rest[:3]).any()
    trimmed = jnp.polydiv(jnp.asarray(A), jnp.asarray(B), trim_leading_zeros=True)[1]
    assert trimmed.shape == (1,)


def test_leading_zeros_of_products_can_be_dropped() -> None:
    a, b = jnp.array([0.0, 0.0, 2.0, 1.0]), jnp.array([0.0, 5.0])
    np.testing.assert_array_equal(jnp.polymul(a, b, trim_leading_zeros=True), [10, 5])
    np.testing.assert_array_equal(jnp.polymul(a, a * 0, trim_leading_zeros=True), [0, 0])


def test_the_derivative_in_the_points_is_that_of_polyder() -> None:
    for p in (A, LONG):
        slope = effax.vmap(effax.grad(partial(jnp.polyval, p)))(X[0] / 4)
        expected = np.polyval(np.polyder(p.astype(np.float64)), X[0] / 4)
        np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(IllTyped, match="polyadd expects a vector"):
        jnp.polyadd(X, A)
    with pytest.raises(BadArgument, match="constant for each integration"):
        jnp.polyint(A, 2, jnp.ones(3))
    with pytest.raises(BadArgument, match="order of polyder"):
        jnp.polyder(A, -1)
    with pytest.raises(BadArgument, match="polydiv expects coefficients"):
        jnp.polydiv(A, jnp.zeros(0))
