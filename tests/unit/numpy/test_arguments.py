"""Arguments that functions and methods take, as JAX's: eagerly and under ``jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, nn, random
from effax.arrays.array import Array

jax: Any = effax
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
W = np.arange(4, dtype=np.float32).reshape(2, 2)
I8 = np.array([100, 2], np.int8)

CASES: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "mean where": (lambda n, a: a.mean(where=a > 1), 3.5),
    "min where": (lambda n, a: a.min(where=a > 1, initial=9), 2),
    "max where": (lambda n, a: a.max(where=a < 4, initial=-9), 3),
    "sum where": (lambda n, a: a.sum(where=a > 1, initial=2.0), 16),
    "prod where": (lambda n, a: a.prod(where=a > 1), 120),
    "sum keepdims": (lambda n, a: a.sum(0, None, None, True), A.sum(0, keepdims=True)),
    "any where": (lambda n, a: a.any(where=a > 1), True),
    "all where": (lambda n, a: a.all(where=a > 1), True),
    "std where": (lambda n, a: a.std(where=a > 1), np.std([2, 3, 4, 5])),
    "var correction": (lambda n, a: a.var(correction=1), 3.5),
    "astype copy": (lambda n, a: a.astype(int, copy=True), A),
    "sort": (lambda n, a: a.sort(stable=True, descending=True), A[:, ::-1]),
    "argsort": (lambda n, a: a.argsort(stable=False, kind=None), [[0, 1, 2]] * 2),
    "argsort dtype": (lambda n, a: n.argsort(-a, dtype=jnp.int8), [[2, 1, 0]] * 2),
    "dot": (lambda n, a: a.dot(a.T, precision="highest", preferred_element_type=float), A @ A.T),
    "take": (lambda n, a: a.take(n.array([1, 9]), mode="fill", fill_value=7), [1, 7]),
    "argmax": (lambda n, a: a.argmax(None, None, True), [[5]]),
    "round": (lambda n, a: a.round(1, None), A),
    "repeat": (lambda n, a: a.repeat(2, 1, total_repeat_length=4), A[:, [0, 0, 1, 1]]),
    "dot sharding": (lambda n, a: n.dot(a, a.T, out_sharding=None), A @ A.T),
    "einsum": (lambda n, a: n.einsum("ij,kj", a, a, _dot_general=lax.dot_general), A @ A.T),
    "segments": (
        lambda n, a: jax.ops.segment_max(a[0], n.array([0, 1, 9]), 2, bucket_size=2, mode="clip"),
        [0, 2],
    ),
    "flat index": (
        lambda n, a: n.ravel_multi_index((n.array([1]), n.array([2])), (2, 3), "clip", "F"),
        [5],
    ),
    "isin": (lambda n, a: n.isin(a, n.array([1, 4]), method="sort"), np.isin(A, [1, 4])),
    "singular values": (lambda n, a: n.linalg.svd(n.diag(a[1]), True, False, True), [5, 4, 3]),
    "rank": (lambda n, a: n.linalg.matrix_rank(n.diag(a[1]), tol=3.5, hermitian=True), 2),
    "pinv": (lambda n, a: n.linalg.pinv(n.diag(a[1]), rcond=0.9), np.diag([0, 0, 0.2])),
    "weights": (
        lambda n, a: n.quantile(a, n.array([0.2, 0.5]), 1, method="inverted_cdf", weights=a[0]),
        [[1, 4], [2, 5]],
    ),
    "nanvar mean": (lambda n, a: n.nanvar(a, mean=0.0), np.mean(A**2)),
    "average": (
        lambda n, a: n.average(n.asarray(B), (0, 2), n.asarray(W)),
        np.average(B, (0, 2), W),
    ),
    "average returned": (
        lambda n, a: n.average(n.asarray(B), (2, 0), n.asarray(W), returned=True)[1],
        [6, 6, 6],
    ),
    "along": (
        lambda n, a: n.take_along_axis(
            a, n.array([[-1], [0]]), 1, "fill", 9, wrap_negative_indices=False
        ),
        [[9], [3]],
    ),
    "eye": (lambda n, a: n.eye(3, k=n.asarray(a[0, 1], int)), np.eye(3, k=1)),
    "tril": (lambda n, a: n.tril(n.ones((3, 3)), n.asarray(a[0, 1], int)), np.tri(3, k=1)),
    "triu": (lambda n, a: n.triu(n.ones((2, 2)), n.asarray(a[0, 1], int)), np.eye(2, k=1)),
    "trace": (lambda n, a: n.trace(a, n.asarray(a[0, 1], int)), np.trace(A, 1)),
    "mul": (lambda n, a: lax.mul(n.asarray(I8), n.asarray(I8), out_dtype=jnp.int32), [10000, 4]),
    "dot of two dtypes": (lambda n, a: lax.dot(a.astype(jnp.bfloat16), a.T), A @ A.T),
    "top": (lambda n, a: lax.top_k(a[0], 1, is_stable=False)[1], [2]),
    "full": (lambda n, a: lax.full((2,), 3.0, sharding=None), [3, 3]),
    "logaddexp": (
        lambda n, a: n.logaddexp(a[0, 1] + 1j, 2j),
        np.log(np.exp(1 + 1j) + np.exp(2j)),
    ),
    "bytes": (lambda n, a: n.array(bytearray(b"abc")), [97, 98, 99]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_arguments(name: str) -> None:
    call, found = CASES[name]
    x = jnp.asarray(A)
    for made in (call(jnp, x), effax.jit(lambda a: call(jnp, a))(x)):
        np.testing.assert_allclose(np.asarray(made), found, rtol=1e-5)


PADS: dict[str, dict[str, Any]] = {
    "linear_ramp": {"mode": "linear_ramp", "end_values": ((1, 2), (3, 4))},
    "ramp of zeros": {"mode": "linear_ramp"},
    "maximum": {"mode": "maximum"},
    "minimum": {"mode": "minimum", "stat_length": ((1, 2), (2, 1))},
    "mean": {"mode": "mean", "stat_length": 2},
    "median": {"mode": "median"},
    "reflect": {"mode": "reflect", "reflect_type": "odd"},
    "symmetric": {"mode": "symmetric", "reflect_type": "odd"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PADS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_modes_of_pad(name: str, dtype: type) -> None:
    x: np.ndarray = np.array([[3, 1, 4], [1, 5, 9]], dtype)
    for widths in (1, (2, 3), ((0, 1), (4, 0))):
        wanted = np.pad(x, widths, **PADS[name])
        for run in (lambda f: f, effax.jit):
            made = run(lambda x, w=widths: jnp.pad(x, w, **PADS[name]))(jnp.asarray(x))
            np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-5)


def test_pad_by_a_function() -> None:
    def ends(v: Array, widths: tuple[int, int], axis: int, kwargs: dict[str, object]) -> Array:
        first, last = widths
        return v.at[:first].set(axis).at[v.shape[0] - last :].set(kwargs["last"])  # type: ignore[arg-type]  # a number

    def in_place(v: np.ndarray, widths: tuple[int, int], axis: int, kwargs: dict[str, Any]) -> None:
        v[: widths[0]] = axis
        v[len(v) - widths[1] :] = kwargs["last"]

    made = jnp.pad(jnp.asarray(A), ((1, 2), (3, 1)), ends, last=8)
    np.testing.assert_array_equal(made, np.pad(A, ((1, 2), (3, 1)), in_place, last=8))


@pytest.mark.parametrize("how", ["truncated_normal", "normal", "uniform"])
def test_complex_initializers(how: str) -> None:
    init = nn.initializers.variance_scaling(2.0, "fan_in", how)
    x = np.asarray(init(random.key(0), (100, 200), jnp.complex64))
    assert x.dtype == np.complex64
    assert abs(np.mean(np.abs(x) ** 2) * 50 - 1) < 0.05
    assert abs(np.mean(x)) < 0.01


DEVICES: dict[str, Callable[..., Any]] = {
    "zeros": lambda **how: jnp.zeros(2, **how),
    "ones": lambda **how: jnp.ones(2, **how),
    "empty": lambda **how: jnp.empty(2, **how),
    "full": lambda **how: jnp.full(2, 1.0, **how),
    "array": lambda **how: jnp.array([1.0], **how),
    "asarray": lambda **how: jnp.asarray([1.0], **how),
    "zeros_like": lambda **how: jnp.zeros_like(A, **how),
    "ones_like": lambda **how: jnp.ones_like(A, **how),
    "full_like": lambda **how: jnp.full_like(A, 1.0, **how),
    "arange": lambda **how: jnp.arange(2, **how),
    "linspace": lambda **how: jnp.linspace(0, 1, 3, **how),
    "eye": lambda **how: jnp.eye(2, **how),
    "fftfreq": lambda **how: jnp.fft.fftfreq(3, **how),
    "rfftfreq": lambda **how: jnp.fft.rfftfreq(3, **how),
}


@pytest.mark.parametrize("name", DEVICES)
def test_devices_of_new_arrays(name: str) -> None:
    made = DEVICES[name](device=effax.devices()[0])
    np.testing.assert_array_equal(np.asarray(made), np.asarray(DEVICES[name]()))
    assert made.devices() == {effax.devices()[0]}
    with pytest.raises(ValueError, match="device"):
        DEVICES[name](device="another")
