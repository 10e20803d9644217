"""Choices, updates, grids, files, and functions along axes, against NumPy."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, BadIndex, ConcretizationError, IllTyped

untyped: Any = jnp
X = np.array([[0.5, 2.0, -1.0, 4.0], [1.0, 3.0, 0.0, 2.5], [2.0, -2.0, 1.5, 1.0]], np.float32)
TALL = np.tile(X[:, :2], (2, 1))
N = np.array([[2, 0, 1, 1]], np.int32)
ODD = np.array([0.0, -0.0, np.inf, np.nan, 1e-42, -3.5, 0.99999994, 1024.0], np.float32)


def changed(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return a call of a function that changes its first argument in NumPy."""

    def call(m: Any, x: Any) -> Any:
        if m is not np:
            return getattr(m, name)(x, *args, **kwargs, inplace=False)
        copy = x.copy()
        getattr(np, name)(copy, *args, **kwargs)
        return copy

    return call


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "compress": (lambda m, x: m.compress(np.array([True, False, True]), x, 1), (X,)),
    "compress flat": (lambda m, x: m.compress(np.array([0, 1, 0, 1]), x), (X,)),
    "choose clip": (lambda m, n, x: m.choose(n * 3 - 1, [x, -x, x * x], mode="clip"), (N, X)),
    "choose wrap": (lambda m, n, x: m.choose(n * 3 - 1, [x, -x, x * x], mode="wrap"), (N, X)),
    "piecewise": (lambda m, x: m.piecewise(x, [x < 0, x > 2], [lambda t: t * t, 7.0]), (X,)),
    "piecewise default": (lambda m, x: m.piecewise(x, [x > 1], [lambda t: -t, abs]), (X,)),
    "piecewise of booleans": (lambda m, x: m.piecewise(x[0, :2], [True, False], [5, 6]), (X,)),
    "place": (changed("place", X > 1, np.array([7.0, 8.0], np.float32)), (X,)),
    "put": (changed("put", np.array([0, -1, 5]), np.array([9.0, 8.0])), (X,)),
    "put wrap": (changed("put", np.array([13, -14]), 9.0, mode="wrap"), (X,)),
    "put clip": (changed("put", np.array([13, 40]), 9.0, mode="clip"), (X,)),
    "put_along_axis": (changed("put_along_axis", np.array([[1], [0], [3]]), 9.0, 1), (X,)),
    "put_along_axis flat": (changed("put_along_axis", np.array([1, 7]), 9.0, None), (X,)),
    "fill_diagonal": (changed("fill_diagonal", np.array([1.0, 2.0])), (X,)),
    "fill_diagonal wrapped": (
        changed("fill_diagonal", 9.0, wrap=True),
        (np.tile(X[:, :2], (2, 1)),),
    ),
    "fill_diagonal of a tall one": (changed("fill_diagonal", 9.0), (TALL,)),
    "fill_diagonal of 3 axes": (changed("fill_diagonal", 9.0), (np.zeros((3, 3, 3), np.float32),)),
    "cumulative_sum": (lambda m, x: m.cumulative_sum(x, axis=1, include_initial=True), (X,)),
    "cumulative_prod": (lambda m, x: m.cumulative_prod(x[0]), (X,)),
    "nanpercentile": (lambda m, x: m.nanpercentile(x, m.array([20.0, 50.0]), axis=0), (X,)),
    "frexp": (lambda m, x: m.frexp(x)[0], (ODD,)),
    "exponents of frexp": (lambda m, x: m.frexp(x)[1], (ODD,)),
    "geomspace": (lambda m, x: m.geomspace(x, 64.0, 5, axis=-1), (X[2, ::3],)),
    "geomspace without the end": (lambda m: m.geomspace(-1.0, -8.0, 3, endpoint=False), ()),
    "apply_along_axis": (lambda m, x: m.apply_along_axis(m.cumsum, 1, x[None]), (X,)),
    "apply_along_axis to matrices": (
        lambda m, x: m.apply_along_axis(lambda v: m.outer(v, v), 0, x[None].repeat(2, 0)),
        (X,),
    ),
    "apply_over_axes": (lambda m, x: m.apply_over_axes(m.sum, x[None], [0, 2]), (X,)),
    "mgrid": (lambda m: m.mgrid[:2, 1:7:3], ()),
    "mgrid of points": (lambda m: m.mgrid[0:1:5j], ()),
    "ogrid": (lambda m: m.ogrid[:2, -1:1:3j][1], ()),
    "r_": (lambda m, x: m.r_[x[0], 5.0, :3, -1:1:3j], (X,)),
    "r_ of rows": (lambda m, x: m.r_["0,2", x, x[0]], (X,)),
    "r_ of columns": (lambda m, x: m.r_["0,2,0", x[0], x[1]], (X,)),
    "r_ along an axis": (lambda m, x: m.r_["-1", x, x], (X,)),
    "c_": (lambda m, x: m.c_[x[0], x[1]], (X,)),
    "c_ of matrices": (lambda m, x: m.c_[x, x], (X,)),
    "s_": (lambda m, x: x[m.s_[1:, ::2]], (X,)),
    "diag_indices_from": (lambda m, x: m.stack(m.diag_indices_from(x[:, :3])), (X,)),
    "tril_indices_from": (lambda m, x: m.stack(m.tril_indices_from(x, 1)), (X,)),
    "triu_indices_from": (lambda m, x: m.stack(m.triu_indices_from(x)), (X,)),
    "fromfunction": (lambda m: m.fromfunction(lambda i, j: i + 2 * j, (2, 3)), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_are_those_of_numpy(name: str) -> None:
    f, args = CASES[name]
    expected = np.asarray(f(np, *args))
    for run in (lambda *a: f(untyped, *a), effax.jit(lambda *a: f(untyped, *a))):
        found = run(*map(jnp.asarray, args))
        if name.endswith("frexp"):  # subnormal numbers are zeros in compiled programs
            found, expected = np.delete(found, 4), np.delete(np.asarray(f(np, *args)), 4)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
        assert found.shape == expected.shape


def test_the_slope_of_a_mantissa_is_a_power_of_2() -> None:
    def mantissa(x: Any) -> Any:
        return jnp.frexp(x)[0]

    slope = effax.vmap(effax.grad(mantissa))(jnp.array([6.0, -0.75]))
    np.testing.assert_array_equal(slope, [0.125, 1.0])


def test_zeros_at_the_ends_are_trimmed() -> None:
    x = jnp.array([[0, 0, 0], [0, 2, 0], [1, 0, 0]])
    np.testing.assert_array_equal(jnp.trim_zeros(x), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(jnp.trim_zeros(x, "b", 1), x[:, :2])
    assert jnp.trim_zeros(x * 0).shape == (0, 3)
    with pytest.raises(ConcretizationError):
        effax.jit(jnp.trim_zeros)(x)


def test_conditions_of_compress_may_be_traced() -> None:
    found = effax.jit(lambda c: jnp.compress(c, X[0], size=3, fill_value=-1))(X[0] > 1)
    np.testing.assert_array_equal(found, [2, 4, -1])


def test_arrays_come_back_from_files(tmp_path: Path) -> None:
    for x in (jnp.array(X), jnp.array([1.5, 2.0], jnp.bfloat16), jnp.array([True])):
        jnp.save(tmp_path / "x.npy", x)
        found = untyped.load(tmp_path / "x.npy")
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)
    file = io.BytesIO()
    jnp.savez(file, jnp.ones(2), name=jnp.zeros(1))
    file.seek(0)
    assert sorted(untyped.load(file)) == ["arr_0", "name"]
    with pytest.raises(ConcretizationError):
        effax.jit(lambda x: jnp.save(io.BytesIO(), x))(1.0)


def test_elements_are_read_from_buffers_and_texts(tmp_path: Path) -> None:
    np.testing.assert_array_equal(jnp.frombuffer(X.tobytes(), jnp.float32, 2, 4), X[0, 1:3])
    X.tofile(tmp_path / "x")
    np.testing.assert_array_equal(jnp.fromfile(tmp_path / "x", jnp.float32), X.ravel())
    np.testing.assert_array_equal(jnp.fromiter(iter([1, 2]), float), [1, 2])
    np.testing.assert_array_equal(jnp.fromstring("1 2", sep=" "), [1, 2])


def test_wrong_arguments_are_refused() -> None:
    for call in (untyped.place, untyped.put, untyped.fill_diagonal):
        with pytest.raises(BadArgument, match="immutable"):
            call(jnp.ones((2, 2)), 1, 1)
    with pytest.raises(BadIndex, match="no such choice"):
        jnp.choose(jnp.array([3]), [1, 2])
    with pytest.raises(BadIndex, match="beyond the last slice"):
        jnp.compress(np.ones(5, bool), X, 0)
    with pytest.raises(BadArgument, match="function for each condition"):
        jnp.piecewise(X, [X > 0], [])
    with pytest.raises(BadArgument, match="expects an axis"):
        jnp.cumulative_sum(X)
    with pytest.raises(IllTyped, match="expects a matrix"):
        jnp.tril_indices_from(X[0])
