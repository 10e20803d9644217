"""Keys, bits and samples equal JAX's, evaluated and traced."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import random
from effax.arrays.array import Array
from effax.arrays.conversion import from_numpy
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.eval.numpy import evaluate
from effax.random import threefry
from tests.unit.numpy.agreement import assert_close

SEEDS = [0, 1, 42, -1, 2**31, 2**40 + 5]

EXACT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "split": lambda r, k, n: r.split(k),
    "split many": lambda r, k, n: r.split(k, 5),
    "split shape": lambda r, k, n: r.split(k, (2, 3)),
    "fold_in": lambda r, k, n: r.fold_in(k, 7),
    "fold_in word": lambda r, k, n: r.fold_in(k, 2**32 - 1),
    "bits": lambda r, k, n: r.bits(k, (3, 5)),
    "bits scalar": lambda r, k, n: r.bits(k),
    "bits empty": lambda r, k, n: r.bits(k, (0, 3)),
    "bits 8": lambda r, k, n: r.bits(k, (7,), "uint8"),
    "bits 16": lambda r, k, n: r.bits(k, (7,), "uint16"),
    "uniform": lambda r, k, n: r.uniform(k, (4, 3)),
    "uniform half": lambda r, k, n: r.uniform(k, (9,), "float16"),
    "uniform bfloat16": lambda r, k, n: r.uniform(k, (9,), "bfloat16"),
    "randint": lambda r, k, n: r.randint(k, (20,), 0, 10),
    "randint negative": lambda r, k, n: r.randint(k, (20,), -7, 1000003),
    "randint all": lambda r, k, n: r.randint(k, (6,), 0, 256, "uint8"),
    "randint int8": lambda r, k, n: r.randint(k, (6,), -128, 128, "int8"),
    "randint empty": lambda r, k, n: r.randint(k, (6,), 3, 3),
    "randint arrays": lambda r, k, n: r.randint(
        k, (2, 3), n.array([0, 5, 9]), n.array([[1], [20]])
    ),
    "bernoulli": lambda r, k, n: r.bernoulli(k, 0.3, (30,)),
    "bernoulli default": lambda r, k, n: r.bernoulli(k),
    "bernoulli array": lambda r, k, n: r.bernoulli(k, n.array([0.1, 0.9, 0.5])),
    "rademacher": lambda r, k, n: r.rademacher(k, (20,)),
    "permutation": lambda r, k, n: r.permutation(k, 17),
    "permutation rows": lambda r, k, n: r.permutation(k, n.arange(12).reshape(4, 3)),
    "permutation columns": lambda r, k, n: r.permutation(k, n.arange(12).reshape(4, 3), 1),
    "permutation lines": lambda r, k, n: r.permutation(
        k, n.arange(12).reshape(4, 3), 1, independent=True
    ),
    "categorical": lambda r, k, n: r.categorical(k, n.log(n.array([0.1, 0.6, 0.3])), shape=(40,)),
    "categorical rows": lambda r, k, n: r.categorical(k, n.arange(12.0).reshape(4, 3) / 4),
    "categorical axis": lambda r, k, n: r.categorical(k, n.arange(12.0).reshape(4, 3) / 4, 0),
    "categorical batch": lambda r, k, n: r.categorical(
        k, n.arange(12.0).reshape(4, 3) / 4, shape=(5, 4)
    ),
    "categorical once": lambda r, k, n: r.categorical(
        k, n.zeros((2, 6)), shape=(4, 2), replace=False
    ),
    "choice": lambda r, k, n: r.choice(k, 9, (12,)),
    "choice once": lambda r, k, n: r.choice(k, 9, (3, 3), replace=False),
    "choice rows": lambda r, k, n: r.choice(k, n.arange(12).reshape(4, 3), (5,)),
    "choice columns": lambda r, k, n: r.choice(k, n.arange(12).reshape(4, 3), (2,), axis=1),
    "choice weighted": lambda r, k, n: r.choice(k, 3, (20,), p=n.array([0.2, 0.5, 0.3])),
    "choice weighted once": lambda r, k, n: r.choice(
        k, 4, (3,), replace=False, p=n.array([0.1, 0.2, 0.3, 0.4])
    ),
    "bernoulli high": lambda r, k, n: r.bernoulli(k, 0.3, (30,), "high"),
    "geometric": lambda r, k, n: r.geometric(k, n.array([0.1, 0.5, 1.0]), (4, 3)),
    "triangular": lambda r, k, n: r.triangular(k, 0.0, n.array([1.0, 2.0]), 3.0, (4, 2)),
}

NEAR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "uniform scaled": lambda r, k, n: r.uniform(k, (9,), minval=-3.0, maxval=0.7),
    "uniform arrays": lambda r, k, n: r.uniform(k, (2, 3), minval=n.array([0.0, 1, 2]), maxval=5.0),
    "normal": lambda r, k, n: r.normal(k, (50,)),
    "normal scalar": lambda r, k, n: r.normal(k),
    "normal half": lambda r, k, n: r.normal(k, (9,), "float16"),
    "normal bfloat16": lambda r, k, n: r.normal(k, (9,), "bfloat16"),
    "normal complex": lambda r, k, n: r.normal(k, (5,), "complex64"),
    "truncated_normal": lambda r, k, n: r.truncated_normal(k, -2.0, 1.0, (20,)),
    "truncated_normal arrays": lambda r, k, n: r.truncated_normal(k, n.array([-1.0, 0.5]), 3.0),
    "exponential": lambda r, k, n: r.exponential(k, (20,)),
    "gumbel": lambda r, k, n: r.gumbel(k, (20,)),
    "laplace": lambda r, k, n: r.laplace(k, (20,)),
    "logistic": lambda r, k, n: r.logistic(k, (20,)),
    "cauchy": lambda r, k, n: r.cauchy(k, (20,)),
    "lognormal": lambda r, k, n: r.lognormal(k, 0.5, (20,)),
    "gumbel high": lambda r, k, n: r.gumbel(k, (20,), mode="high"),
    "pareto": lambda r, k, n: r.pareto(k, n.array([0.5, 2.0]), (9, 2)),
    "rayleigh": lambda r, k, n: r.rayleigh(k, n.array(2.0), (9,)),
    "wald": lambda r, k, n: r.wald(k, n.array([0.5, 2.0]), (4, 2)),
    "weibull_min": lambda r, k, n: r.weibull_min(k, 2.0, 0.5, (9,)),
    "maxwell": lambda r, k, n: r.maxwell(k, (9,)),
    "double_sided_maxwell": lambda r, k, n: r.double_sided_maxwell(k, 1.0, n.array([2.0]), (9,)),
    "multivariate_normal": lambda r, k, n: r.multivariate_normal(
        k, n.array([1.0, 2.0]), n.array([[2.0, 0.5], [0.5, 1.0]]), (9,)
    ),
}


@cache
def samplers_of_jax() -> Callable[[object], dict[str, Any]]:
    import jax

    calls = {**EXACT, **NEAR}
    return jax.jit(lambda key: {n: call(jax.random, key, jax.numpy) for n, call in calls.items()})  # type: ignore[no-any-return, unused-ignore]  # jax is not typed


@cache
def of_jax(seed: int) -> dict[str, np.ndarray]:
    import jax

    return {name: np.asarray(x) for name, x in samplers_of_jax()(jax.random.PRNGKey(seed)).items()}


@pytest.mark.jax
@pytest.mark.parametrize("seed", SEEDS)
def test_keys_are_those_of_jax(seed: int) -> None:
    import jax

    wanted = np.asarray(jax.random.PRNGKey(seed))
    np.testing.assert_array_equal(np.asarray(random.PRNGKey(seed)), wanted)
    np.testing.assert_array_equal(np.asarray(random.key_data(random.key(seed))), wanted)


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 12345])
@pytest.mark.parametrize("name", EXACT)
def test_bits_and_choices_are_those_of_jax(name: str, seed: int) -> None:
    found = np.asarray(EXACT[name](random, random.PRNGKey(seed), jnp))
    wanted = of_jax(seed)[name]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 12345])
@pytest.mark.parametrize("name", NEAR)
def test_samples_are_those_of_jax_up_to_rounding(name: str, seed: int) -> None:
    found = np.asarray(NEAR[name](random, random.PRNGKey(seed), jnp))
    wanted = of_jax(seed)[name]
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert_close(found, wanted, rtol=2e-6)


def test_bits_do_not_change() -> None:
    # Known answers, so that a machine without JAX notices a change too.
    assert np.asarray(random.bits(random.key(0), (3,))).tolist() == [
        4070199207,
        4202968722,
        1427181096,
    ]
    assert np.asarray(random.split(random.PRNGKey(0))).tolist() == [
        [1797259609, 2579123966],
        [928981903, 3453687069],
    ]


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (40000,)])
def test_bits_of_the_program_equal_those_of_numpy(shape: tuple[int, ...], width: Any) -> None:
    key = random.PRNGKey(3)
    program = threefry.bits_program(shape, width)
    (traced,) = evaluate(program.jaxpr, [key.numpy()])
    np.testing.assert_array_equal(traced, np.asarray(threefry.random_bits(key, width, shape)))


def test_the_programs_of_split_and_fold_in_agree_with_numpy() -> None:
    key = random.PRNGKey(3)
    (keys,) = evaluate(threefry.split_program((2, 3)).jaxpr, [key.numpy()])
    np.testing.assert_array_equal(keys, np.asarray(random.split(key, (2, 3))))
    word = np.asarray(9, np.uint32)
    (folded,) = evaluate(threefry.fold_program().jaxpr, [key.numpy(), word])
    np.testing.assert_array_equal(folded, np.asarray(random.fold_in(key, 9)))


def test_great_arrays_are_counted_in_64_bits() -> None:
    shape = jax.eval_shape(lambda k: random.bits(k, (10**6, 10**6)), random.key(0))
    assert shape.shape == (10**6, 10**6)
    with pytest.raises(ValueError, match="too large"):
        random.bits(random.key(0), (10**6, 10**6))


def test_all_64_bits_of_two_words() -> None:
    (bits,) = evaluate(threefry.bits_program((4,), 64).jaxpr, [random.PRNGKey(5).numpy()])
    narrow = np.asarray(threefry.random_bits(random.PRNGKey(5), 32, (4,)))
    assert bits.dtype == np.uint64
    folded = (bits >> np.uint64(32)) ^ (bits & np.uint64(0xFFFFFFFF))
    np.testing.assert_array_equal(folded.astype(np.uint32), narrow)


def test_a_traced_call_is_one_equation() -> None:
    from tests.unit.numpy.tracing import traced

    jaxpr = traced(lambda key: random.bits(key, (3,)), random.PRNGKey(0))
    assert [eqn.prim.name for eqn in jaxpr.eqns] == ["jit"]
    assert "threefry2x32" in str(jaxpr)


@pytest.mark.slow
def test_traced_samples_equal_evaluated_ones() -> None:
    from tests.unit.numpy.tracing import run_traced

    for call in (*EXACT.values(), *NEAR.values()):
        key = random.PRNGKey(11)
        found = run_traced(lambda k, call=call: call(random, k, jnp), key)
        np.testing.assert_allclose(
            np.asarray(found).astype(np.complex128),
            np.asarray(call(random, key, jnp)).astype(np.complex128),
            rtol=1e-6,
        )


def test_moments() -> None:
    x = np.asarray(random.normal(random.key(2), (20000,)))
    assert abs(x.mean()) < 0.03
    assert abs(x.std() - 1) < 0.03
    u = np.asarray(random.uniform(random.key(2), (20000,), minval=2.0, maxval=4.0))
    assert 2 <= u.min() < 2.01
    assert 3.99 < u.max() < 4


def test_a_traced_seed_has_the_key_of_its_value() -> None:
    from tests.unit.numpy.tracing import run_traced

    found = run_traced(random.PRNGKey, jnp.int32(42))
    np.testing.assert_array_equal(found, np.asarray(random.PRNGKey(42)))


def test_samples_survive_pickling_of_keys() -> None:
    key = pickle.loads(pickle.dumps(random.key(8)))
    np.testing.assert_array_equal(random.bits(key, (2,)), random.bits(random.key(8), (2,)))


def test_narrow_uniforms_stay_below_their_bound() -> None:
    u = random.uniform(random.key(0), (2000,), jnp.bfloat16)
    assert float(np.asarray(u).astype(np.float32).max()) < 1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: random.bits(jnp.zeros((3, 2), jnp.uint32)), IllTyped, "vmap"),
        (lambda: random.bits(jnp.zeros(2)), IllTyped, "u32"),
        (lambda: random.uniform(random.key(0), (2,), jnp.int32), IllTyped, "floating"),
        (lambda: random.bits(random.key(0), (2,), jnp.int32), IllTyped, "unsigned"),
        (lambda: random.key(1.5), IllTyped, "integer"),
        (lambda: random.key(1 << 70), BadArgument, "64 bits"),
        (lambda: random.key(0, impl="other"), BadArgument, "threefry2x32"),
        (lambda: random.fold_in(random.key(0), -1), BadArgument, "32 bits"),
        (lambda: random.fold_in(random.key(0), jnp.arange(3)), IllTyped, "vmap"),
        (lambda: random.choice(random.key(0), 3, (4,), replace=False), BadArgument, "population"),
        (lambda: random.choice(random.key(0), 0, (4,)), BadArgument, "population"),
        (lambda: random.choice(random.key(0), 3, p=jnp.ones(2)), IllTyped, "probability"),
        (lambda: random.bernoulli(random.key(0), 1), IllTyped, "probability"),
        (lambda: random.randint(random.key(0), (2,), 0, 3, jnp.float32), IllTyped, "integer"),
        (lambda: random.uniform(random.key(0), (-1,)), BadArgument, "negative"),
        (lambda: random.gumbel(random.key(0), mode="other"), BadArgument, "mode"),
        (lambda: random.choice(random.key(0), 3, 2), TypeError, "sequence"),
        (lambda: random.key(1 << 63), OverflowError, "64 bits"),
        (lambda: random.permutation(random.key(0), 3, axis=1), ValueError, "axis"),
    ],
)
def test_bad_arguments(call: Callable[[], Array], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


FAR = [(10.0, 11.0), (-11.0, -10.0), (2.1, 2.2), (5.0, np.inf), (-np.inf, -8.0), (30.0, np.inf)]


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), FAR)
def test_samples_of_a_far_tail_have_its_distribution(low: float, high: float) -> None:
    key = random.key(3)
    near, far = (low, high) if low > 0 else (-high, -low)
    x = np.asarray(random.truncated_normal(key, low, high, (2000,)))
    traced = jax.jit(lambda k, a, b: random.truncated_normal(k, a, b, (2000,)))
    np.testing.assert_allclose(x, traced(key, low, high), rtol=2e-6)
    assert ((x > low) & (x < high)).all()
    above = [math.erfc(d / math.sqrt(2)) for d in [near, far, *np.sort(np.abs(x)).tolist()]]
    distribution = (above[0] - np.array(above[2:])) / (above[0] - above[1])
    # The test of Kolmogorov and Smirnov.
    assert np.abs(distribution - (np.arange(2000) + 0.5) / 2000).max() < 1.6 / math.sqrt(2000)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_samples_of_a_tail_are_finite(dtype: str) -> None:
    for low, high in [(2.0, np.inf), (-np.inf, 0.0), (-np.inf, np.inf), (6.0, np.inf)]:
        x = np.asarray(random.truncated_normal(random.key(1), low, high, (5000,), dtype))
        assert np.abs(x.astype(float)).max() < 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("low", "high"), [(10.0, 11.0), (-np.inf, -8.0), (1.0, 3.0), (4.0, np.inf)]
)
def test_the_derivative_of_a_truncated_sample_is_finite(low: float, high: float) -> None:
    def sample(a: Array, b: Array) -> Array:
        return random.truncated_normal(random.key(2), a, b, ())

    found = [float(g) for g in jax.grad(sample, (0, 1))(jnp.float32(low), jnp.float32(high))]
    assert np.isfinite(found).all()
    assert 0 <= min(found) <= max(found) <= 1


def test_split_copies_nothing_writable() -> None:
    keys = random.split(from_numpy(np.array([1, 2], np.uint32)))
    with pytest.raises(ValueError, match="read-only"):
        keys.numpy()[0] = 0
