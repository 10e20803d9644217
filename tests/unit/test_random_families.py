"""Samples have their distributions: tests of Kolmogorov and Smirnov, and of chi square."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import random
from effax.ir.errors import BadArgument, IllTyped

KEY = random.key(42)
N = 3000


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


def normal_cdf(x: Any) -> Any:
    return (1 + erf(np.asarray(x) / math.sqrt(2))) / 2


def wald_cdf(x: Any, mean: float) -> Any:
    root = np.sqrt(1 / x)
    low, high = normal_cdf(root * (x / mean - 1)), normal_cdf(-root * (x / mean + 1))
    return low + math.exp(2 / mean) * high


def triangular_cdf(x: Any) -> Any:
    # Between 0 and 3, greatest at 1.
    return np.where(x < 1, x**2 / 3, 1 - (3 - x) ** 2 / 6)


CONTINUOUS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "uniform": (lambda: random.uniform(KEY, (N,)), lambda x: x),
    "normal": (lambda: random.normal(KEY, (N,)), normal_cdf),
    "exponential": (lambda: random.exponential(KEY, (N,)), lambda x: 1 - np.exp(-x)),
    "gumbel": (lambda: random.gumbel(KEY, (N,)), lambda x: np.exp(-np.exp(-x))),
    "gumbel high": (
        lambda: random.gumbel(KEY, (N,), mode="high"),
        lambda x: np.exp(-np.exp(-x)),
    ),
    "gumbel highest": (
        lambda: random.gumbel(KEY, (N,), mode="highest"),
        lambda x: np.exp(-np.exp(-x)),
    ),
    "laplace": (
        lambda: random.laplace(KEY, (N,)),
        lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    ),
    "logistic": (lambda: random.logistic(KEY, (N,)), lambda x: 1 / (1 + np.exp(-x))),
    "cauchy": (lambda: random.cauchy(KEY, (N,)), lambda x: 0.5 + np.arctan(x) / np.pi),
    "lognormal": (
        lambda: random.lognormal(KEY, 0.5, (N,)),
        lambda x: normal_cdf(np.log(x) / 0.5),
    ),
    "pareto": (lambda: random.pareto(KEY, 2.0, (N,)), lambda x: 1 - x**-2.0),
    "rayleigh": (lambda: random.rayleigh(KEY, 2.0, (N,)), lambda x: 1 - np.exp(-(x**2) / 8)),
    "wald": (lambda: random.wald(KEY, 2.0, (N,)), lambda x: wald_cdf(x, 2.0)),
    "triangular": (lambda: random.triangular(KEY, 0.0, 1.0, 3.0, (N,)), triangular_cdf),
    "weibull_min": (
        lambda: random.weibull_min(KEY, 2.0, 1.5, (N,)),
        lambda x: 1 - np.exp(-((x / 2) ** 1.5)),
    ),
    "maxwell": (
        lambda: random.maxwell(KEY, (N,)),
        lambda x: erf(x / math.sqrt(2)) - math.sqrt(2 / math.pi) * x * np.exp(-(x**2) / 2),
    ),
    "double_sided_maxwell": (
        lambda: (random.double_sided_maxwell(KEY, 1.0, 2.0, (N,)) - 1) / 2,
        lambda x: (
            0.5 + erf(x / math.sqrt(2)) / 2 - math.sqrt(1 / (2 * math.pi)) * x * np.exp(-(x**2) / 2)
        ),
    ),
    "multivariate_normal": (
        lambda: (
            random.multivariate_normal(
                KEY, jnp.ones(2), jnp.array([[2.0, 1.5], [1.5, 2.0]]), (N,), method="eigh"
            )
            @ jnp.array([1.0, -1.0])
        ),
        normal_cdf,
    ),
    "orthogonal": (
        lambda: random.orthogonal(KEY, 3, (N // 3,))[:, 1].reshape(-1),
        lambda x: (1 + x) / 2,
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_have_their_cumulative_distribution(name: str) -> None:
    sample, cdf = CONTINUOUS[name]
    x = np.sort(np.asarray(sample()).astype(np.float64))
    steps = (np.arange(x.size) + 0.5) / x.size
    # The test of Kolmogorov and Smirnov, at a level of about 1e-4.
    assert np.abs(cdf(x) - steps).max() < 2.2 / math.sqrt(x.size)


def binomial_mass(n: int, p: float) -> dict[int, float]:
    return {k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}


def poisson_mass(mean: float) -> dict[int, float]:
    return {k: math.exp(-mean) * mean**k / math.factorial(k) for k in range(60)}


DISCRETE: dict[str, tuple[Callable[[], Any], dict[int, float]]] = {
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, (N,)), {0: 0.7, 1: 0.3}),
    "bernoulli high": (lambda: random.bernoulli(KEY, 0.3, (N,), "high"), {0: 0.7, 1: 0.3}),
    "rademacher": (lambda: random.rademacher(KEY, (N,)), {-1: 0.5, 1: 0.5}),
    "randint": (lambda: random.randint(KEY, (N,), -2, 3), dict.fromkeys(range(-2, 3), 0.2)),
    "geometric": (
        lambda: random.geometric(KEY, 0.4, (N,)),
        {k: 0.4 * 0.6 ** (k - 1) for k in range(1, 60)},
    ),
    "binomial by inversion": (lambda: random.binomial(KEY, 20, 0.2, (N,)), binomial_mass(20, 0.2)),
    "binomial by rejection": (lambda: random.binomial(KEY, 40, 0.6, (N,)), binomial_mass(40, 0.6)),
    "multinomial": (
        lambda: random.multinomial(KEY, 9, jnp.array([0.2, 0.5, 0.3]), shape=(N,))[:, 1],
        binomial_mass(9, 0.5),
    ),
    "poisson by products": (lambda: random.poisson(KEY, 3.0, (N,)), poisson_mass(3.0)),
    "poisson by rejection": (lambda: random.poisson(KEY, 14.0, (N,)), poisson_mass(14.0)),
    "poisson approximate": (
        lambda: random.poisson(KEY, 5.0, (N,), method="approximate"),
        poisson_mass(5.0),
    ),
    "poisson approximate of a great mean": (
        lambda: random.poisson(KEY, 12.0, (N,), method="approximate"),
        poisson_mass(12.0),
    ),
    "categorical": (
        lambda: random.categorical(KEY, jnp.log(jnp.array([0.2, 0.5, 0.3])), shape=(N,)),
        {0: 0.2, 1: 0.5, 2: 0.3},
    ),
    "choice": (
        lambda: random.choice(KEY, 3, (N,), p=jnp.array([0.2, 0.5, 0.3])),
        {0: 0.2, 1: 0.5, 2: 0.3},
    ),
    "permutation": (
        lambda: jax.vmap(lambda k: random.permutation(k, 4)[0])(random.split(KEY, N)),
        dict.fromkeys(range(4), 0.25),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCRETE)
def test_samples_have_their_probabilities(name: str) -> None:
    sample, mass = DISCRETE[name]
    x = np.asarray(sample()).astype(np.int64)
    frequent = {k: n * x.size for k, n in mass.items() if n * x.size > 5}
    rest = max(x.size - sum(frequent.values()), 1e-9)
    found = {k: np.count_nonzero(x == k) for k in frequent}
    square: float = sum((found[k] - n) ** 2 / n for k, n in frequent.items())
    if rest > 1:
        square += (x.size - sum(found.values()) - rest) ** 2 / rest
    degrees = len(frequent)
    # Four standard deviations of the chi-square distribution.
    assert square < degrees + 4 * math.sqrt(2 * degrees) + 6


def test_vectors_have_their_covariance() -> None:
    cov = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("cholesky", "eigh", "svd"):
        x = random.multivariate_normal(KEY, jnp.array([1.0, 2.0]), cov, (N,), method=method)
        np.testing.assert_allclose(np.asarray(x).mean(0), [1, 2], atol=0.1)
        np.testing.assert_allclose(np.cov(np.asarray(x).T), cov, atol=0.2)
    assert random.multivariate_normal(KEY, jnp.zeros((3, 1, 0)), jnp.zeros((0, 0))).shape == (
        3,
        1,
        0,
    )


@pytest.mark.parametrize(("n", "m"), [(4, 4), (4, 2), (2, 4)])
def test_rows_or_columns_are_orthonormal(n: int, m: int) -> None:
    x = random.orthogonal(KEY, n, (2,), m=m)
    assert x.shape == (2, n, m)
    tall = x if n >= m else x.mT
    np.testing.assert_allclose(
        tall.mT @ tall, jnp.broadcast_to(jnp.eye(min(n, m)), (2, min(n, m), min(n, m))), atol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: random.pareto(KEY, jnp.ones(3), (2,)), IllTyped, "broadcast"),
        (lambda: random.pareto(KEY, jnp.ones(3), dtype=int), IllTyped, "float dtype"),
        (lambda: random.pareto(KEY, jnp.ones(3), dtype="float16"), IllTyped, "float16"),
        (lambda: random.geometric(KEY, 0.5, dtype=float), IllTyped, "int dtype"),
        (lambda: random.bernoulli(KEY, 0.5, mode="other"), BadArgument, "mode"),
        (lambda: random.uniform(KEY, out_sharding=3), BadArgument, "uniform"),
        (lambda: random.multivariate_normal(KEY, jnp.ones(2), jnp.eye(3)), IllTyped, "square"),
        (
            lambda: random.multivariate_normal(KEY, jnp.ones(3), jnp.eye(3), method="qr"),
            BadArgument,
            "method",
        ),
        (lambda: random.multinomial(KEY, 3, 0.5), IllTyped, "ndim"),
        (lambda: random.dirichlet(KEY, 1.0), IllTyped, "ndim"),
        (lambda: random.gamma(KEY, 1.0, method="other"), BadArgument, "method"),
        (lambda: random.poisson(KEY, 1.0, dtype=float), IllTyped, "int dtype"),
    ],
)
def test_bad_parameters(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


# Known answers of JAX: the second of two new keys, and the key that 3 is folded into.
NEW_KEYS = {
    "rbg": (
        [202567368, 3886822060, 202567368, 3886822060],
        [2939540675, 3076691462, 2939540675, 3076691462],
    ),
    "unsafe_rbg": (
        [3739331121, 2239189395, 1258670070, 2509022470],
        [56543296, 1826787328, 2453521982, 2503663984],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_generators_of_xla(impl: str) -> None:
    key = random.key(5, impl=impl)
    assert random.key_impl(key) == impl
    assert random.key_data(key).tolist() == [0, 5, 0, 5]
    assert random.bits(key, (3,)).tolist() == [1612232000, 3369602501, 1197273755]
    new = (random.split(key)[1], random.fold_in(key, 3))
    assert tuple(random.key_data(k).tolist() for k in new) == NEW_KEYS[impl]
    keys = random.split(key, 3)

    def everything(k: Any) -> Any:
        return (
            random.bits(k, (5,)),
            random.bits(k, (2, 2), "uint8"),
            random.key_data(random.split(k)),
            random.key_data(random.fold_in(k, 3)),
            random.uniform(k),
        )

    wanted = [everything(k) for k in keys]
    compiled = jax.jit(everything)(keys[1])
    for i, batched in enumerate(jax.vmap(everything)(keys)):
        np.testing.assert_array_equal(batched, np.stack([np.asarray(w[i]) for w in wanted]))
        np.testing.assert_array_equal(compiled[i], wanted[1][i])


def test_words_belong_to_the_default_generator() -> None:
    with jax.default_prng_impl("rbg"):
        words = random.PRNGKey(3)
        assert words.tolist() == [0, 3, 0, 3]
        assert random.bits(words) == random.bits(random.key(3))
        assert str(random.key(3).dtype) == "key<rbg>"
        with pytest.raises(TypeError, match=r"u32\[4\]"):
            random.bits(jnp.zeros(2, jnp.uint32))
    with pytest.raises(TypeError, match=r"u32\[2\]"):
        random.bits(words)
