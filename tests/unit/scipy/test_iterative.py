"""Iterative solvers, minimization, and cosine transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.experimental.sparse import BCOO
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy import fft, optimize
from effax.scipy.sparse.linalg import bicgstab, cg, gmres
from effax.testing import check_grads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(5, 5))
SYSTEMS: list[tuple[Callable[..., Any], np.ndarray]] = [
    (cg, A @ A.T + np.eye(5)),
    (bicgstab, A + 4 * np.eye(5)),
    (gmres, A + 2 * np.eye(5)),
]
B = RNG.normal(size=5)


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("method", "a"), SYSTEMS)
def test_solutions_and_their_derivatives(method: Callable[..., Any], a: np.ndarray) -> None:
    def solve(b: Any) -> Any:
        return method(a, b, tol=1e-12)[0]

    wanted = np.linalg.solve(a, B)
    np.testing.assert_allclose(solve(B), wanted, rtol=1e-8)
    np.testing.assert_allclose(effax.jit(solve)(B), wanted, rtol=1e-8)
    both = effax.vmap(solve)(np.stack([B, 2 * B]))
    np.testing.assert_allclose(both, [wanted, 2 * wanted], rtol=1e-8)
    slope = effax.grad(lambda b: jnp.sum(solve(b)))(B)
    np.testing.assert_allclose(slope, np.linalg.solve(a.T, np.ones(5)), rtol=1e-8)
    steep = effax.grad(lambda a: jnp.sum(method(lambda x: a @ x, B, tol=1e-12)[0]))(a)
    np.testing.assert_allclose(steep, -np.outer(slope, wanted), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", [cg, bicgstab, gmres])
def test_trees_and_preconditioners(method: Callable[..., Any]) -> None:
    def double(x: Any) -> Any:
        return {"u": 2 * x["u"], "v": 4 * x["v"]}

    b = {"u": jnp.ones(2), "v": jnp.array(2.0)}
    found, _ = method(double, b, x0=b, M=lambda x: x, maxiter=3)
    np.testing.assert_allclose(found["u"], [0.5, 0.5])
    np.testing.assert_allclose(found["v"], 0.5)
    with pytest.raises(IllTyped, match="x0 has another structure"):
        method(double, b, x0=jnp.ones(3))
    with pytest.raises(IllTyped, match="x0 has another shape"):
        method(double, b, x0={"u": jnp.ones((2, 1)), "v": b["v"]})
    for operator in (jnp.ones((2, 3)), [[1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(IllTyped, match="A is no linear operator"):
            method(operator, jnp.ones(2))
    np.testing.assert_allclose(method(BCOO.fromdense(2 * np.eye(2)), jnp.ones(2))[0], 0.5)


def rosenbrock(x: Any, scale: float = 100.0) -> Any:
    return jnp.sum(scale * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_minima(method: str) -> None:
    found = optimize.minimize(rosenbrock, np.zeros(3), (10.0,), method=method)
    np.testing.assert_allclose(found.x, 1, rtol=1e-5)
    assert found.success and found.status == 0 and found.nfev >= found.nit
    short = optimize.minimize(rosenbrock, np.zeros(3), method=method, options={"maxiter": 1})
    assert not short.success and short.status == 1
    minimize = effax.jit(lambda x: optimize.minimize(rosenbrock, x, method=method).x)
    np.testing.assert_allclose(minimize(np.zeros(2)), 1, rtol=1e-5)
    start = np.array([0.5 - 1j])
    found = optimize.minimize(lambda z: jnp.sum(jnp.abs(z - 1 - 2j) ** 2), start, method=method)
    np.testing.assert_allclose(found.x, [1 + 2j], rtol=1e-5)
    assert found.jac.dtype == found.x.dtype
    with pytest.raises(BadArgument, match="unknown method"):
        optimize.minimize(rosenbrock, np.zeros(2), method="newton")
    for x0 in (1j, np.ones((2, 2)), np.ones(2, int)):
        with pytest.raises(IllTyped, match="vector of inexact numbers"):
            optimize.minimize(rosenbrock, x0, method="BFGS")


def cosines(x: np.ndarray, type: int) -> Any:
    """Return the sums of the definition."""
    n = x.shape[-1]
    k, j = np.arange(n)[:, None], np.arange(n)
    if type == 1:
        ends = np.where((j == 0) | (j == n - 1), 1, 2)
        return x @ (ends * np.cos(np.pi * k * j / (n - 1))).T
    if type == 2:
        return 2 * x @ np.cos(np.pi * k * (2 * j + 1) / (2 * n)).T
    if type == 3:
        return x @ (np.where(j == 0, 1, 2) * np.cos(np.pi * j * (2 * k + 1) / (2 * n))).T
    return 2 * x @ np.cos(np.pi * (2 * j + 1) * (2 * k + 1) / (4 * n)).T


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [2, 5])
def test_cosine_transforms(type: int, n: int) -> None:
    x = RNG.normal(size=(2, n))
    np.testing.assert_allclose(fft.dct(x, type), cosines(x, type), atol=1e-12)
    np.testing.assert_allclose(fft.idct(fft.dct(x, type), type), x, atol=1e-12)
    whole = fft.dct(x, type, norm="ortho")
    np.testing.assert_allclose(fft.idct(whole, type, norm="ortho"), x, atol=1e-12)
    np.testing.assert_allclose(jnp.sum(whole**2), np.sum(x**2))
    both = fft.dctn(x, type)
    np.testing.assert_allclose(both, cosines(cosines(x, type).T, type).T, atol=1e-12)
    np.testing.assert_allclose(fft.idctn(both, type), x, atol=1e-12)


def test_cosine_transforms_of_other_sizes_and_their_derivatives() -> None:
    x = RNG.normal(size=(3, 4))
    np.testing.assert_allclose(fft.dct(x, n=3, axis=0), cosines(x.T, 2).T, atol=1e-12)
    wide = np.pad(x, [(0, 0), (0, 2)])
    np.testing.assert_allclose(fft.dctn(x, s=[6]), cosines(wide, 2), atol=1e-12)
    check_grads(fft.dct, (x,), order=1)
    with pytest.raises(BadArgument, match="unknown type"):
        fft.dct(x, 5)


def test_tridiagonal_systems() -> None:
    low, middle, up = RNG.normal(size=(3, 2, 4)) + np.array([0, 5, 0])[:, None, None]
    b = RNG.normal(size=(2, 4, 3))
    dense = [
        np.diag(m) + np.diag(d[1:], -1) + np.diag(u[:-1], 1)
        for d, m, u in zip(low, middle, up, strict=True)
    ]
    found = lax.linalg.tridiagonal_solve(low, middle, up, b)
    np.testing.assert_allclose(found, np.linalg.solve(np.stack(dense), b), rtol=1e-10)
    check_grads(lax.linalg.tridiagonal_solve, (low, middle, up, b), order=1)
    with pytest.raises(IllTyped, match="do not fit"):
        lax.linalg.tridiagonal_solve(low, middle, up, b[0])


@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_triangular_systems_of_lax(left_side: bool, transpose_a: bool) -> None:
    b = A[:, :2] if left_side else A[:2]
    x = lax.linalg.triangular_solve(A, b, left_side=left_side, transpose_a=transpose_a, lower=True)
    low = np.tril(A).T if transpose_a else np.tril(A)
    np.testing.assert_allclose(low @ x if left_side else x @ low, b, atol=1e-9)
