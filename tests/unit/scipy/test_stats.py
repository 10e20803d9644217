"""Distributions agree with themselves and have derivatives; statistics of samples."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import random
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy import stats
from effax.testing import check_grads
from tests.unit.scipy.cases import CONTINUOUS, DISCRETE

Z = np.array([0.2, 0.5, 0.7])


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_functions_of_a_distribution_agree(name: str) -> None:
    shapes, listed = CONTINUOUS[name]
    module, has = import_module(f"effax.scipy.stats.{name}"), listed.split()
    args = (*shapes, -0.75, 1.5)
    x = (Z + (name == "pareto")) * 1.5 - 0.75
    density = module.pdf(x, *args)
    np.testing.assert_allclose(jnp.log(density), module.logpdf(x, *args), rtol=1e-12, atol=1e-12)
    if "cdf" in has:
        slope = effax.grad(lambda x: jnp.sum(module.cdf(x, *args)))(x)
        np.testing.assert_allclose(slope, density, rtol=1e-10)
    if "sf" in has:
        np.testing.assert_allclose(module.sf(x, *args) + module.cdf(x, *args), 1, rtol=1e-12)
    if "ppf" in has:
        np.testing.assert_allclose(
            module.ppf(module.cdf(x, *args), *args), x, rtol=1e-10, atol=1e-14
        )
    if "isf" in has:
        np.testing.assert_allclose(
            module.isf(module.sf(x, *args), *args), x, rtol=1e-10, atol=1e-14
        )
    check_grads(module.logpdf, (x, *map(np.float64, args)), order=1, atol=1e-6, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_of_a_distribution_add_up(name: str) -> None:
    module, shapes = import_module(f"effax.scipy.stats.{name}"), DISCRETE[name]
    total = jnp.sum(module.pmf(np.arange(300), *shapes))
    np.testing.assert_allclose(total, 1, rtol=1e-10)
    check_grads(
        lambda *p: module.logpmf(np.array([1.0]), *p),
        (*map(np.float64, shapes),),
        order=1,
        rtol=1e-5,
    )


def test_multivariate_densities() -> None:
    spread = np.array([[2.0, 0.5], [0.5, 1.0]])
    off = np.array([[0.5, -1.0], [0.0, 0.0]])
    size = np.einsum("ki,ij,kj->k", off, np.linalg.inv(spread), off)
    wanted = -0.5 * size - np.log(2 * np.pi) - 0.5 * np.log(np.linalg.det(spread))
    normal = stats.multivariate_normal
    np.testing.assert_allclose(normal.logpdf(off + 1, np.ones(2), spread), wanted, rtol=1e-12)
    np.testing.assert_allclose(normal.pdf(0.5, 0.0, 4.0), stats.norm.pdf(0.5, 0, 2), rtol=1e-12)
    np.testing.assert_allclose(
        normal.logpdf(off, np.zeros(2), 2.0), normal.logpdf(off, np.zeros(2), 2 * np.eye(2))
    )
    with pytest.raises(IllTyped, match="does not fit the mean"):
        normal.logpdf(off, np.zeros(2), np.eye(3))
    # Γ(6)/(Γ(1)Γ(2)Γ(3)) = 60
    point = np.array([0.2, 0.3, 0.5])
    alpha = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(stats.dirichlet.pdf(point, alpha), 60 * 0.3 * 0.25, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.pdf(point[:2], alpha), 60 * 0.3 * 0.25, rtol=1e-12)
    assert stats.dirichlet.logpdf(point + 0.1, alpha) == -np.inf
    shares = np.array([0.25, 0.25, 0.5])
    pmf = stats.multinomial.pmf(np.array([[1, 1, 2], [1, 1, 1]]), 4, shares)
    np.testing.assert_allclose(pmf, [12 * 0.25**3, 0], rtol=1e-12)


def test_ranks_and_modes() -> None:
    x = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, np.nan]])
    np.testing.assert_array_equal(stats.rankdata(x, axis=1), [[2.5, 1, 2.5], [np.nan] * 3])
    for method, wanted in {
        "min": [3, 1, 3, 1],
        "max": [4, 2, 4, 2],
        "dense": [2, 1, 2, 1],
        "ordinal": [3, 1, 4, 2],
    }.items():
        np.testing.assert_array_equal(stats.rankdata(np.array([5, 0, 5, 0]), method), wanted)
    found = stats.mode(np.array([[1, 2], [1, 3], [0, 3]]), keepdims=True)
    np.testing.assert_array_equal(found.mode, [[1, 3]])
    np.testing.assert_array_equal(found.count, [[2, 2]])
    assert stats.mode(np.array([np.nan, np.nan, 1.0])).count == 2
    np.testing.assert_allclose(stats.sem(np.array([1.0, 3.0, np.nan]), nan_policy="omit"), 1)
    with pytest.raises(BadArgument, match="unknown method"):
        stats.rankdata(x, "first")


@pytest.mark.slow
def test_estimated_densities() -> None:
    samples = np.array([-1.0, 0.0, 2.0, 2.5])
    kde = stats.gaussian_kde(samples, weights=np.array([1.0, 2.0, 1.0, 1.0]))
    grid = np.linspace(-15, 15, 2001)

    def area(values: Any) -> Any:
        return jnp.sum(values) * 0.015

    np.testing.assert_allclose(area(kde(grid)), 1, rtol=1e-9)

    inside = (grid > -1) & (grid < 2)
    near = area(jnp.where(inside, kde(grid), 0))
    np.testing.assert_allclose(kde.integrate_box_1d(-1, 2), near, rtol=1e-2)
    square = area(kde(grid) ** 2)
    np.testing.assert_allclose(kde.integrate_kde(kde), square, rtol=1e-9)
    weighted = area(kde(grid) * stats.norm.pdf(grid, 1, 2))
    np.testing.assert_allclose(kde.integrate_gaussian(1.0, 4.0), weighted, rtol=1e-9)
    drawn = kde.resample(random.key(0), (2000,))
    np.testing.assert_allclose(jnp.mean(drawn), np.average(samples, weights=[1, 2, 1, 1]), atol=0.2)
    assert effax.jit(lambda k, x: k.logpdf(x))(kde, 0.5).shape == (1,)
    with pytest.raises(BadArgument, match="unknown bw_method"):
        stats.gaussian_kde(samples, "other")
