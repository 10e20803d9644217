"""Samples of the gamma family have their distributions, and the derivatives of their quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax, random

KEY = random.key(42)
N = 3000


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


SAMPLES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "gamma of 1/2": (lambda: random.gamma(KEY, 0.5, (N,)), lambda x: erf(np.sqrt(x))),
    "gamma of 3": (
        lambda: random.gamma(KEY, 3.0, (N,)),
        lambda x: 1 - np.exp(-x) * (1 + x + x**2 / 2),
    ),
    "gamma approximate": (
        lambda: random.gamma(KEY, 0.5, (N,), method="approximate"),
        lambda x: erf(np.sqrt(x)),
    ),
    "loggamma": (
        lambda: jnp.exp(random.loggamma(KEY, 2.0, (N,))),
        lambda x: 1 - np.exp(-x) * (1 + x),
    ),
    "chisquare": (lambda: random.chisquare(KEY, 2.0, (N,)), lambda x: 1 - np.exp(-x / 2)),
    "beta": (
        lambda: random.beta(KEY, 2.0, 3.0, (N,)),
        lambda x: 6 * x**2 - 8 * x**3 + 3 * x**4,
    ),
    "dirichlet": (
        lambda: random.dirichlet(KEY, jnp.array([2.0, 1.0, 2.0]), (N,))[:, 0],
        lambda x: 6 * x**2 - 8 * x**3 + 3 * x**4,
    ),
    "t": (
        lambda: random.t(KEY, 2.0, (N,)),
        lambda x: 0.5 + x / (2 * np.sqrt(2 + x**2)),
    ),
    "f": (lambda: random.f(KEY, 2.0, 4.0, (N,)), lambda x: 1 - (1 + x / 2) ** -2.0),
    "generalized_normal": (
        lambda: random.generalized_normal(KEY, 1.0, (N,)),
        lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    ),
    "ball": (
        lambda: jnp.linalg.norm(random.ball(KEY, 3, 2.0, (N,)), axis=-1) ** 3,
        lambda x: x,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_have_their_cumulative_distribution(name: str) -> None:
    sample, cdf = SAMPLES[name]
    x = np.sort(np.asarray(sample()).astype(np.float64))
    steps = (np.arange(x.size) + 0.5) / x.size
    # The test of Kolmogorov and Smirnov, at a level of about 1e-4.
    assert np.abs(cdf(x) - steps).max() < 2.2 / math.sqrt(x.size)


@pytest.mark.slow
def test_the_derivative_of_a_sample_is_that_of_its_quantile() -> None:
    def f(a: Any) -> Any:
        return random.gamma(KEY, a, dtype=a.dtype)

    def g(a: Any) -> Any:
        return random.loggamma(KEY, a, dtype=a.dtype)

    with jax.enable_x64():
        a = jnp.array([0.3, 0.9, 2.0, 15.0], jnp.float64)
        x = f(a)
        h = 1e-6
        # F(a, x) is constant: dx/da = -(∂F/∂a)/(∂F/∂x).
        in_shape = (lax.igamma(a + h, x) - lax.igamma(a - h, x)) / (2 * h)
        density = jnp.exp((a - 1) * jnp.log(x) - x - lax.lgamma(a))
        wanted = -in_shape / density
        slope = jax.grad(lambda a: jnp.sum(f(a)))(a)
        np.testing.assert_allclose(slope, wanted, rtol=1e-5)
        slope = jax.jvp(g, (a,), (a * 0 + 1,))[1]
        np.testing.assert_allclose(slope, wanted / x, rtol=1e-5)
    slope_of_one = jax.grad(lambda a: random.gamma(KEY, a))
    np.testing.assert_allclose(jax.jit(slope_of_one)(2.0), slope_of_one(2.0), rtol=1e-5)


@pytest.mark.slow
def test_derivatives_of_means() -> None:
    def mean(sample: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *parameters: jnp.mean(sample(KEY, *parameters))

    a, b = jnp.full(N, 2.0), jnp.full(N, 3.0)
    slopes = jax.grad(mean(random.beta), (0, 1))(a, b)
    # E x = a/(a + b)
    np.testing.assert_allclose([jnp.sum(s) for s in slopes], [3 / 25, -2 / 25], rtol=0.1)
    alpha = jnp.broadcast_to(jnp.array([2.0, 1.0, 2.0]), (N, 3))
    slope = jax.grad(lambda a: jnp.mean(random.dirichlet(KEY, a)[:, 0]))(alpha)
    np.testing.assert_allclose(jnp.sum(slope, 0), [3 / 25, -2 / 25, -2 / 25], rtol=0.1)
    np.testing.assert_allclose(jnp.sum(jax.grad(mean(random.chisquare))(b)), 1, rtol=0.1)
    # E x = d/(d - 2)
    slope = jax.grad(lambda d: jnp.mean(random.f(KEY, a, d)))(jnp.full(N, 12.0))
    np.testing.assert_allclose(jnp.sum(slope), -2 / 100, rtol=0.3)


CALLS: dict[str, Callable[[], Any]] = {
    "binomial": lambda: random.binomial(
        KEY, jnp.array([5.0, 1000.0, jnp.inf, -1.0]), jnp.array([[0.1], [0.8]])
    ),
    "multinomial": lambda: random.multinomial(KEY, 100.0, jnp.array([0.2, 0.5, 0.3])),
    "poisson": lambda: random.poisson(KEY, jnp.array([0.0, 0.5, 9.0, 50.0, 1e4])),
    "poisson approximate": lambda: random.poisson(
        KEY, jnp.array([0.5, 9.0, 50.0]), method="approximate"
    ),
    "gamma": lambda: random.gamma(KEY, jnp.array([0.1, 0.5, 2.5, 30.0])),
    "gamma approximate": lambda: random.gamma(KEY, jnp.array([0.1, 2.5]), method="approximate"),
    "loggamma": lambda: random.loggamma(KEY, jnp.array([0.1, 0.5, 2.5, 30.0])),
    "beta": lambda: random.beta(KEY, 0.5, jnp.array([1.0, 2.0, 3.0])),
    "dirichlet": lambda: random.dirichlet(KEY, jnp.array([0.5, 1.0, 2.0])),
    "chisquare": lambda: random.chisquare(KEY, jnp.array([1.0, 5.0])),
    "f": lambda: random.f(KEY, jnp.array([1.0, 5.0]), 3.0),
    "t": lambda: random.t(KEY, jnp.array([1.0, 5.0])),
    "generalized_normal": lambda: random.generalized_normal(KEY, 1.5, (3,)),
    "ball": lambda: random.ball(KEY, 3),
    "gumbel highest": lambda: random.gumbel(KEY, (3,), mode="highest"),
}

# Known answers of JAX 0.12.
KNOWN = {
    "binomial": [0.0, 109.0, np.inf, np.nan, 4.0, 812.0, np.inf, np.nan],
    "multinomial": [19.0, 48.0, 33.0],
    "poisson": [0.0, 1.0, 12.0, 45.0, 9857.0],
    "poisson approximate": [0.0, 10.0, 52.0],
    "gamma": [0.01056851, 0.50632739, 4.19411134, 27.26004219],
    "gamma approximate": [6.12691565e-06, 2.31680202],
    "loggamma": [-4.54987573, -0.68057167, 1.43368148, 3.30542182],
    "beta": [0.49731835, 0.15737295, 0.38923245],
    "dirichlet": [0.20680315, 0.06861007, 0.72458678],
    "chisquare": [1.99890851, 3.00157284],
    "f": [0.22458955, 2.00166034],
    "t": [0.16719029, -1.10232234],
    "generalized_normal": [-0.87823754, -0.20616245, 1.16047096],
    "ball": [0.32340228, 0.06133874, 0.01824338],
    "gumbel highest": [0.39925780, -0.12997582, 0.04309510],
}


@pytest.mark.parametrize("name", KNOWN)
def test_samples_are_those_of_jax(name: str) -> None:
    found = np.asarray(CALLS[name]()).astype(float).ravel()
    np.testing.assert_allclose(found, KNOWN[name], rtol=1e-5)


@pytest.mark.slow
def test_batches_have_the_samples_of_their_keys() -> None:
    keys, shapes = random.split(KEY, 4), jnp.array([0.2, 1.0, 3.0, 40.0])
    wanted = [float(random.gamma(k, a)) for k, a in zip(keys, shapes, strict=True)]
    np.testing.assert_allclose(jax.vmap(random.gamma)(keys, shapes), wanted, rtol=1e-6)
    assert random.gamma(random.PRNGKey(42), 3.0) == random.gamma(KEY, 3.0)
    assert random.gamma(KEY, jnp.zeros((0, 3))).shape == (0, 3)
    assert random.dirichlet(KEY, jnp.ones((2, 3)), (4, 2)).shape == (4, 2, 3)


def test_samples_of_small_shapes_are_not_zero_in_logarithms() -> None:
    x = random.loggamma(KEY, jnp.array([1e-6, 1e-3]), (100, 2))
    assert np.isfinite(np.asarray(x)).all()
    assert float(x.min()) < -1000
    y = np.asarray(random.beta(KEY, 1e-3, 1e-3, (100,)))
    assert ((y >= 0) & (y <= 1)).all()
