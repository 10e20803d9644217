"""Sets, histograms, covariances, windows, differences, insertions and partitions, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, BadIndex, ConcretizationError, IllTyped

untyped: Any = jnp
X = np.array([[0.5, 2.0, -1.0, 4.0], [1.0, 3.0, 0.0, 2.5], [2.0, -2.0, 1.5, 1.0]], np.float32)
V, W = np.array([3, 1, 4, 1, 5, 2], np.int32), np.array([5, 7, 1], np.int32)
F = np.array([1, 2, 1, 3], np.int32)
A = np.array([0.5, 1.0, 2.0, 0.25], np.float32)

STATIC: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "cov": (lambda m, x: m.cov(x), (X,)),
    "cov of columns": (lambda m, x: m.cov(x, rowvar=False, bias=True), (X,)),
    "cov of two": (lambda m, x: m.cov(x[0], x[1], ddof=0), (X,)),
    "cov of one": (lambda m, x: m.cov(x[0]), (X,)),
    "cov weighted": (lambda m, x, f, a: m.cov(x, fweights=f, aweights=a), (X, F, A)),
    "cov complex": (lambda m, x: m.cov(x * (1 + 2j * x)), (X,)),
    "corrcoef": (lambda m, x: m.corrcoef(x), (X,)),
    "corrcoef of one": (lambda m, x: m.corrcoef(x[0]), (X,)),
    "ediff1d": (lambda m, x: m.ediff1d(x, to_begin=m.array([9.0, 8.0]), to_end=1.0), (X,)),
    "gradient": (lambda m, x: m.stack(m.gradient(x)), (X,)),
    "gradient along one": (lambda m, x: m.gradient(x, 0.5, axis=1), (X,)),
    "gradient of coordinates": (lambda m, x, c: m.gradient(x, c, axis=1), (X, np.cumsum(A))),
    "gradient of two": (lambda m, x: m.gradient(x[:2], axis=0), (X,)),
    "trapezoid": (lambda m, x: m.trapezoid(x, dx=0.5, axis=0), (X,)),
    "trapezoid of coordinates": (lambda m, x, c: m.trapezoid(x, c), (X, np.cumsum(A))),
    "trapezoid of one": (lambda m, x: m.trapezoid(x[:, :1]), (X,)),
    "unwrap": (lambda m, x: m.unwrap(3 * x, axis=0), (X,)),
    "unwrap of integers": (lambda m, x: m.unwrap(x * 3, period=6), (V,)),
    "unwrap of an odd period": (lambda m, x: m.unwrap(x * 2, period=5), (V,)),
    "unwrap from a jump": (lambda m, x: m.unwrap(3 * x, discont=5.0), (X,)),
    "bartlett": (lambda m: m.bartlett(7), ()),
    "blackman": (lambda m: m.blackman(8), ()),
    "hamming": (lambda m: m.hamming(1), ()),
    "hanning": (lambda m: m.hanning(7), ()),
    "kaiser": (lambda m: m.kaiser(9, 14.0), ()),
    "no window": (lambda m: m.hanning(0), ()),
    "i0": (lambda m, x: m.i0(x), (X,)),
    "block": (lambda m, x: m.block([[x, x[:, :1]], [x[:1, 1:], m.ones((1, 2))]]), (X,)),
    "block of rows": (lambda m, x: m.block([x[0], x[1, :2], 7.0]), (X,)),
    "dsplit": (lambda m, x: m.dsplit(x[None], 2)[1], (X,)),
    "resize": (lambda m, x: m.resize(x, (5, 3)), (X,)),
    "rollaxis": (lambda m, x: m.rollaxis(x[None], 0, 3), (X,)),
    "delete": (lambda m, x: m.delete(x, np.array([0, -1]), axis=1), (X,)),
    "delete a slice": (lambda m, x: m.delete(x, np.s_[::2]), (X,)),
    "delete by a mask": (lambda m, x: m.delete(x, np.array([True, False, True]), 0), (X,)),
    "insert": (lambda m, x: m.insert(x, 1, 7.0, axis=1), (X,)),
    "insert many": (lambda m, x: m.insert(x, np.array([3, 1, 1]), x[:, :3] + 9, axis=1), (X,)),
    "insert in one place": (lambda m, x: m.insert(x, np.array([2]), x[:, :2], axis=1), (X,)),
    "insert rows": (lambda m, x: m.insert(x, 1, x[:2], axis=0), (X,)),
    "insert columns": (lambda m, x: m.insert(x, 0, x[:, 0], axis=1), (X,)),
    "insert flat": (lambda m, x: m.insert(x, 2, m.array([1.0, 2.0])), (X,)),
    "histogram": (lambda m, x: m.histogram(x, 4)[0], (X,)),
    "histogram of edges": (lambda m, x, e: m.histogram(x, e)[0], (X, np.cumsum(A))),
    "histogram in a range": (lambda m, x: m.histogram(x, 4, (0.0, 2.0), density=True)[0], (X,)),
    "histogram of weights": (lambda m, x: m.histogram(x, 3, weights=x * x)[0], (X,)),
    "histogram of equal samples": (lambda m, x: m.histogram(x[:1, :1], 3)[1], (X,)),
    "histogram_bin_edges": (lambda m, x: m.histogram_bin_edges(x, 5), (X,)),
    "histogram2d": (lambda m, x: m.histogram2d(x[0], x[1], [2, 3], density=True)[0], (X,)),
    "histogramdd": (lambda m, x: m.histogramdd(x.T, 2)[0], (X,)),
    "sort_complex": (lambda m, x: m.sort_complex(x[0]), (X,)),
}
"""Functions whose results have known shapes."""

DYNAMIC: dict[str, tuple[Callable[..., Any], int]] = {
    "union1d": (lambda m, **size: m.union1d(V, W, **size), 6),
    "intersect1d": (lambda m, **size: m.intersect1d(V, W, **size), 2),
    "setdiff1d": (lambda m, **size: m.setdiff1d(V, W, **size), 3),
    "setdiff1d in order": (lambda m, **size: m.setdiff1d(V, W, True, **size), 3),
    "setxor1d": (lambda m, **size: m.setxor1d(V, W, **size), 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STATIC)
def test_functions_are_those_of_numpy(name: str) -> None:
    f, args = STATIC[name]
    expected = np.asarray(f(np, *args))
    for run in (lambda *a: f(untyped, *a), effax.jit(lambda *a: f(untyped, *a))):
        found = run(*map(jnp.asarray, args))
        np.testing.assert_allclose(found, expected, rtol=3e-5, atol=1e-6)
        assert found.shape == expected.shape


@pytest.mark.slow
@pytest.mark.parametrize("name", DYNAMIC)
def test_sets_are_those_of_numpy(name: str) -> None:
    f, count = DYNAMIC[name]
    expected = f(np)
    found = np.asarray(f(untyped))
    np.testing.assert_array_equal(found, expected)
    sized = np.asarray(effax.jit(lambda: f(untyped, size=count + 2, fill_value=-9))())
    np.testing.assert_array_equal(sized[: len(expected)], expected)
    np.testing.assert_array_equal(sized[len(expected) :], -9)
    np.testing.assert_array_equal(f(untyped, size=1), expected[:1])
    padding = 0 if "setdiff1d" in name else expected[0]
    np.testing.assert_array_equal(f(untyped, size=len(expected) + 1)[-1], padding)


def test_intersections_have_the_indices_of_first_occurrences() -> None:
    expected = np.intersect1d(V, W, return_indices=True)
    for size in (None, 2):
        found = untyped.intersect1d(V, W, return_indices=True, size=size)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_parts_of_unique_are_those_of_numpy() -> None:
    x = np.array([[2.0, np.nan, 1.0], [np.nan, 2.0, 2.0]], np.float32)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        for one, other in zip(getattr(jnp, name)(x), getattr(np, name)(x), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(jnp.unique_values(x), [1, 2, np.nan, np.nan])


def test_partitions_have_an_element_in_its_place() -> None:
    for k in (0, 2, -1):
        for found in (jnp.partition(X, k), jnp.take_along_axis(X, jnp.argpartition(X, k), -1)):
            np.testing.assert_array_equal(np.asarray(found)[:, k], np.sort(X)[:, k])


def test_gradients_of_histograms_are_those_of_the_weights() -> None:
    edges = jnp.array([0.0, 1.0, 3.0])
    slope = effax.grad(lambda w: jnp.histogram(X[0], edges, weights=w)[0][1])(jnp.ones(4))
    np.testing.assert_array_equal(slope, [0, 1, 0, 0])


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(BadIndex, match="delete is out of bounds"):
        jnp.delete(X, 4, 1)
    with pytest.raises(ConcretizationError):
        effax.jit(lambda i: jnp.delete(X, i))(1)
    with pytest.raises(BadArgument, match="differ in depth"):
        jnp.block([[X], X])
    with pytest.raises(IllTyped, match="counts observations"):
        jnp.cov(X, fweights=A)
    with pytest.raises(BadArgument, match="methods"):
        untyped.histogram(X, "auto")
    with pytest.raises(BadArgument, match="samples along each axis"):
        jnp.gradient(X[:, :1])
