"""Functions of neural networks: JAX's values, stable, with the right derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import effax.numpy as jnp
from effax import jit, nn, random
from effax.arrays.array import Array
from effax.arrays.config import enable_x64
from effax.ir.errors import BadArgument, IllTyped
from tests.unit.numpy.agreement import assert_same
from tests.unit.numpy.tracing import run_traced

X = np.array([[-3.0, -0.5, 0.0], [0.25, 2.0, 30.0]], np.float32)
L = np.array([[1.0, -np.inf, 2.0], [1000.0, 1001.0, -1000.0]], np.float32)
K = np.array([[True, False, True], [True, True, False]])
LABELS = np.array([0, 2, 5, -1], np.int32)


def plain(name: str) -> Callable[[Any, Any], Any]:
    return lambda n, x: getattr(n, name)(x)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: plain(name)
        for name in [
            "relu",
            "relu6",
            "sigmoid",
            "silu",
            "swish",
            "softplus",
            "log_sigmoid",
            "soft_sign",
            "tanh",
            "hard_tanh",
            "hard_sigmoid",
            "hard_silu",
            "hard_swish",
            "elu",
            "celu",
            "selu",
            "leaky_relu",
            "gelu",
            "mish",
            "squareplus",
            "softmax",
            "log_softmax",
            "logsumexp",
            "logmeanexp",
            "standardize",
            "identity",
        ]
    },
    "gelu exact": lambda n, x: n.gelu(x, approximate=False),
    "elu alpha": lambda n, x: n.elu(x, 0.5),
    "leaky_relu slope": lambda n, x: n.leaky_relu(x, 0.2),
    "celu alpha": lambda n, x: n.celu(x, 2.0),
    "softmax axis": lambda n, x: n.softmax(x, axis=0),
    "softmax axes": lambda n, x: n.softmax(x, axis=(0, 1)),
    "softmax where": lambda n, x: n.softmax(x, where=K),
    "log_softmax where": lambda n, x: n.log_softmax(x, where=K),
    "softmax infinite": lambda n, x: n.softmax(x * 0 + L),
    "log_softmax infinite": lambda n, x: n.log_softmax(x * 0 + L),
    "logsumexp infinite": lambda n, x: n.logsumexp(x * 0 + L, axis=1),
    "logsumexp axis": lambda n, x: n.logsumexp(x, axis=1, keepdims=True),
    "logsumexp b": lambda n, x: n.logsumexp(x, axis=1, b=x + 4),
    "logsumexp sign": lambda n, x: n.logsumexp(x, axis=1, b=-x, return_sign=True),
    "logsumexp where": lambda n, x: n.logsumexp(x, axis=1, where=K),
    "logsumexp negative": lambda n, x: n.logsumexp(x, axis=1, b=-1.0),
    "logmeanexp where": lambda n, x: n.logmeanexp(x, axis=1, where=K),
    "standardize stable": lambda n, x: n.standardize(x, axis=0, algorithm="stable"),
    "standardize where": lambda n, x: n.standardize(x, where=K),
    "standardize given": lambda n, x: n.standardize(x, mean=1.0, variance=4.0),
    "glu": lambda n, x: n.glu(x.T, axis=1),
    "relu int": lambda n, x: n.relu(x.astype("int32")),
    "sigmoid half": lambda n, x: n.sigmoid(x.astype("float16")),
    "relu python": lambda n, x: n.relu(-2.0),
    "one_hot": lambda n, x: n.one_hot(LABELS, 4),
    "one_hot axis": lambda n, x: n.one_hot(LABELS, 3, axis=0, dtype="int8"),
}


@cache
def results_of_jax() -> dict[str, Any]:
    import jax

    run = jax.jit(lambda x: {name: call(jax.nn, x) for name, call in CALLS.items()})
    return run(jax.numpy.asarray(X))  # type: ignore[no-any-return, unused-ignore]  # jax is not typed


@pytest.mark.jax
@pytest.mark.parametrize("name", CALLS)
def test_results_agree_with_jax(name: str) -> None:
    found = CALLS[name](nn, jnp.asarray(X))
    assert_same(found, results_of_jax()[name], rtol=3e-6, weak=name != "relu python")


@pytest.mark.parametrize("name", CALLS)
def test_traced_results_equal_evaluated_ones(name: str) -> None:
    call = CALLS[name]
    found = run_traced(lambda x: call(nn, x), jnp.asarray(X))
    wanted = call(nn, jnp.asarray(X))
    if isinstance(wanted, tuple):
        found, wanted = found[0], wanted[0]
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6)


def test_softmax_sums_to_one_and_masks_with_zeros() -> None:
    weights = np.asarray(nn.softmax(jnp.asarray(L)))
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)
    assert weights[0, 1] == 0
    masked = np.asarray(nn.softmax(jnp.asarray(X), where=jnp.asarray(K)))
    assert (masked[~K] == 0).all()
    nothing = np.asarray(nn.softmax(jnp.asarray(X), where=jnp.zeros((2, 3), bool)))
    assert (nothing == 0).all()


def derivative(function: Callable[[Array], Array], x: np.ndarray) -> np.ndarray:
    from effax.api.autodiff import grad

    def total(y: Array) -> Array:
        return jnp.sum(function(y))

    return np.asarray(grad(total)(jnp.asarray(x)))


def test_relu_has_derivative_zero_at_zero() -> None:
    x = np.array([-1, 0, -0.0, 2], np.float32)
    np.testing.assert_array_equal(derivative(nn.relu, x), [0, 0, 0, 1])
    x = np.array([-1, 0, 3, 6, 7], np.float32)
    np.testing.assert_array_equal(derivative(nn.relu6, x), [0, 0, 1, 0, 0])
    assert np.isnan(np.asarray(nn.relu(jnp.array(np.nan))))


SMOOTH = [
    "sigmoid",
    "silu",
    "softplus",
    "log_sigmoid",
    "tanh",
    "gelu",
    "mish",
    "squareplus",
    "softmax",
    "log_softmax",
    "elu",
]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_agree_with_differences(name: str) -> None:
    x = np.array([-2.0, -0.3, 0.4, 1.5], np.float32)

    def weighted(y: Array) -> Array:
        return getattr(nn, name)(y) * jnp.array([1.0, 2.0, -1.0, 0.5])  # type: ignore[no-any-return]  # an array

    found = derivative(weighted, x)
    h = 1e-2
    for i in range(4):
        step = h * (np.arange(4) == i).astype(np.float32)
        above, below = (np.asarray(weighted(jnp.asarray(x + s))).sum() for s in (step, -step))
        np.testing.assert_allclose(found[i], (above - below) / (2 * h), rtol=2e-2, atol=2e-3)


def test_derivatives_stay_finite_where_values_are_extreme() -> None:
    assert np.isfinite(derivative(nn.softmax, L[1])).all()
    assert np.isfinite(derivative(nn.logsumexp, L[0])).all()
    x = np.array([-1e4, -100, 0, 100, 1e4], np.float32)
    for f in (nn.softplus, nn.log_sigmoid, nn.elu, nn.sigmoid, nn.silu):
        assert np.isfinite(derivative(f, x)).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", [*SMOOTH[:8], "soft_sign", "celu", "selu", "hard_silu"])
def test_values_and_slopes_at_large_numbers_are_those_of_double_precision(
    name: str, dtype: str
) -> None:
    function = getattr(nn, name)
    large = float(np.finfo(dtype).max)
    x = np.array([0, 1, -1, 20, -20, 200, -200, 1000, -1000, 3e4, -3e4, large, -large], dtype)
    found = [np.asarray(f(x)) for f in (function, jit(function))] + [derivative(function, x)]
    with enable_x64():
        exact = [np.asarray(function(jnp.asarray(x.astype(float))))] * 2
        exact += [derivative(function, x.astype(float))]
    eps = float(np.finfo(dtype).eps)
    for y, wanted in zip(found, exact, strict=True):
        with np.errstate(over="ignore"):
            rounded = wanted.astype(dtype).astype(float)
        np.testing.assert_allclose(y.astype(float), rounded, rtol=8 * eps, atol=eps)


INITIALIZERS = [
    "glorot_normal",
    "glorot_uniform",
    "xavier_normal",
    "xavier_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
]


@pytest.mark.slow
@pytest.mark.jax
@pytest.mark.parametrize("shape", [(5, 7), (3, 3, 4, 6)])
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_agree_with_jax(name: str, shape: tuple[int, ...]) -> None:
    import jax

    found = getattr(nn.initializers, name)()(random.key(3), shape)
    wanted = getattr(jax.nn.initializers, name)()(jax.random.PRNGKey(3), shape)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=5e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.jax
def test_unscaled_initializers_agree_with_jax() -> None:
    import jax

    theirs = jax.nn.initializers
    for name, args in [("normal", (0.5,)), ("uniform", (2.0,)), ("truncated_normal", (0.1,))]:
        found = getattr(nn.initializers, name)(*args)(random.key(1), (4, 5))
        wanted = getattr(theirs, name)(*args)(jax.random.PRNGKey(1), (4, 5))
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=5e-6, atol=1e-7)


def test_constant_initializers() -> None:
    key = random.key(0)
    assert np.asarray(nn.initializers.zeros(key, (2,))).tolist() == [0, 0]
    assert nn.initializers.ones(key, (2,), jnp.float16).dtype == jnp.float16
    assert np.asarray(nn.initializers.constant(3)(key, (2,))).tolist() == [3, 3]
    assert nn.initializers.constant(3)(key, (2,)).dtype == jnp.float32
    half = nn.initializers.he_normal(dtype=jnp.bfloat16)(key, (2, 3))
    assert half.dtype == jnp.bfloat16


def test_variance_scaling_has_the_stated_variance() -> None:
    for mode, fan in [("fan_in", 200), ("fan_out", 400), ("fan_avg", 300)]:
        for distribution in ("normal", "uniform", "truncated_normal"):
            init = nn.initializers.variance_scaling(3.0, mode, distribution)
            x = np.asarray(init(random.key(0), (200, 400)))
            np.testing.assert_allclose(x.var(), 3 / fan, rtol=0.02)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: nn.one_hot(jnp.zeros(2), 3), IllTyped, "integers"),
        (lambda: nn.glu(jnp.zeros(3)), IllTyped, "even"),
        (lambda: nn.softmax(jnp.zeros(3), axis=1), BadArgument, "axis"),
        (lambda: nn.standardize(jnp.zeros(3), algorithm="best"), BadArgument, "algorithm"),
        (lambda: nn.initializers.he_normal()(random.key(0), (3,)), BadArgument, "2 axes"),
        (lambda: nn.initializers.variance_scaling(1, "fan", "normal"), BadArgument, "mode"),
        (
            lambda: nn.initializers.variance_scaling(1, "fan_in", "beta"),
            BadArgument,
            "distribution",
        ),
        (lambda: nn.relu("x"), IllTyped, "not an array"),  # type: ignore[arg-type]  # what is tested
    ],
)
def test_bad_arguments(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_orthogonal_initializers() -> None:
    init = nn.initializers
    key = random.key(0)
    x = init.orthogonal(2.0, column_axis=0)(key, (3, 2, 2))
    rows = x.reshape(3, 4)
    np.testing.assert_allclose(rows @ rows.T, 4 * np.eye(3), atol=1e-5)
    kernel = init.delta_orthogonal()(key, (3, 1, 2))
    assert not kernel[0].any() and not kernel[2].any()
    np.testing.assert_allclose(kernel[1] @ kernel[1].T, [[1.0]], atol=1e-6)
    with pytest.raises(BadArgument, match="orthogonal initializes no array of this shape"):
        init.orthogonal()(key, (3,))
    with pytest.raises(BadArgument, match="fewer outputs than inputs"):
        init.delta_orthogonal()(key, (3, 2, 1))
