"""Forms and functions of matrices, and roots and fits of polynomials, against SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
import effax.scipy.linalg as ours
from effax import tree
from effax.ir.errors import BadArgument, IllTyped
from effax.testing import check_grads
from tests.unit.transforms.array_cases import normal

theirs: Any = pytest.importorskip("scipy.linalg")
la: Any = ours
A, Z, B = normal(4, 4), normal(4, 4, dtype="complex128"), normal(2, 2)
X, Y = normal(9), normal(9, 2)

pytestmark = pytest.mark.slow

CASES: dict[str, Callable[[Any], Any]] = {
    "schur": lambda m: m.schur(A),
    "schur complex": lambda m: m.schur(A, "complex"),
    "hessenberg": lambda m: m.hessenberg(Z),
    "rsf2csf": lambda m: m.rsf2csf(A, A + 1),
    "sqrtm": lambda m: m.sqrtm(Z),
    "sqrtm of a real matrix": lambda m: m.sqrtm(A @ A.T),
    "funm": lambda m: m.funm(A, lambda x: x**-2.5, disp=False),
    "solve_sylvester": lambda m: m.solve_sylvester(A, B, A[:, :2]),
    "qr pivoted": lambda m: m.qr(A[:, :3], pivoting=True),
    "qr_multiply pivoted": lambda m: m.qr_multiply(A[:, :3], A, pivoting=True),
}
FITS: dict[str, Callable[[Any], Any]] = {
    "vector": lambda m: m.polyfit(X, Y[:, 0], 3),
    "full": lambda m: m.polyfit(X, Y, 2, full=True),
    "covariance": lambda m: m.polyfit(X, Y, 2, w=X**2, cov=True),
    "unscaled": lambda m: m.polyfit(X, Y[:, 0], 2, cov="unscaled"),
}


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    wanted = tree.leaves(CASES[name](theirs))
    for run in (CASES[name](ours), effax.jit(lambda: CASES[name](ours))()):
        for found, other in zip(tree.leaves(run), wanted, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", FITS)
def test_fits(name: str) -> None:
    wanted = tree.leaves(FITS[name](np))
    for found, other in zip(tree.leaves(FITS[name](jnp)), wanted, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-8, atol=1e-8)


def test_roots() -> None:
    p = np.array([0.0, 2.0, 3.0, 4.0, 0.0])
    for found in (jnp.roots(p), effax.jit(lambda p: jnp.roots(p, strip_zeros=False))(p)[:3]):
        np.testing.assert_allclose(np.sort(np.abs(found)), np.sort(np.abs(np.roots(p))))
    assert np.isnan(jnp.roots(p, strip_zeros=False)[3])
    assert jnp.roots(jnp.zeros(3)).shape == jnp.roots(1.0).shape == (0,)
    check_grads(lambda p: jnp.roots(p, strip_zeros=False), (p[1:],), 1, rtol=1e-6, atol=1e-6)
    check_grads(lambda x, y: jnp.polyfit(x, y, 2), (X, Y), 1, rtol=1e-6, atol=1e-6)


def test_batches_and_special_matrices() -> None:
    t, z = effax.vmap(la.rsf2csf)(np.stack([A, A.T]), np.stack([A, A]))
    np.testing.assert_allclose(t[0], la.rsf2csf(A, A)[0], atol=1e-10)
    found = la.solve_sylvester(np.stack([A, A.T]), B, A[:, :2])
    np.testing.assert_allclose(found[0], la.solve_sylvester(A, B, A[:, :2]), atol=1e-10)
    assert np.isnan(la.solve_sylvester(B, -B, B)).all()
    np.testing.assert_allclose(la.sqrtm(np.diag([4.0, 0.0])), np.diag([2.0, 0.0]))
    h, q = la.hessenberg(Z, calc_q=True)
    np.testing.assert_allclose(q @ h @ q.conj().T, Z, atol=1e-10)
    del z


def test_bad_input() -> None:
    with pytest.raises(IllTyped, match="convolution_matrix takes vectors"):
        la.convolution_matrix(2.0, 3)
    with pytest.raises(BadArgument, match="output of schur"):
        la.schur(A, "triangular")
    with pytest.raises(BadArgument, match="method of solve_sylvester"):
        la.solve_sylvester(A, A, A, method="lu")
    for f in (lambda: la.solve_sylvester(A, B, A), lambda: la.rsf2csf(A, B)):
        with pytest.raises(IllTyped):
            f()
    with pytest.raises(BadArgument, match="degree and points"):
        jnp.polyfit(X, Y, -1)
    with pytest.raises(BadArgument, match="too few points"):
        jnp.polyfit(X[:2], Y[:2], 1, cov=True)
    with pytest.raises(IllTyped, match="points of polyfit"):
        jnp.polyfit(X, Y[:3], 1)
