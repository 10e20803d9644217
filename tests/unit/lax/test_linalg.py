"""Factorizations of ``lax.linalg`` against LAPACK, eager and compiled, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, tree
from effax.ir.errors import BadArgument, IllTyped, NotApplicable
from effax.testing import check_grads
from tests.unit.transforms.array_cases import normal

scipy_linalg: Any = pytest.importorskip("scipy.linalg")
la: Any = lax.linalg
A, Z = normal(4, 4), normal(4, 4, dtype="complex128")
B = normal(2, 4, 4, seed=1)

pytestmark = pytest.mark.slow
both_dtypes = pytest.mark.parametrize("x", [A, Z], ids=["real", "complex"])


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


def eager_and_compiled(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Return the results of both, which are equal, and those of a batch of two."""
    found = tree.leaves(f(*map(jnp.asarray, args)))
    compiled = tree.leaves(effax.jit(f)(*args))
    batched = tree.leaves(effax.vmap(f)(*[np.stack([x, x]) for x in args]))
    for x, y, z in zip(found, compiled, batched, strict=True):
        assert x.dtype == y.dtype == z.dtype
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(x, z[1], rtol=1e-9, atol=1e-10)
    return [np.asarray(x) for x in found]


def lapack(name: str, x: Any) -> Any:
    return scipy_linalg.get_lapack_funcs((name,), (x,))[0]


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)


@both_dtypes
def test_eigenvectors_of_both_sides(x: Any) -> None:
    w, left, right = eager_and_compiled(la.eig, x)
    same(x @ right, right * w)
    same(left.conj().T @ x, w[:, None] * left.conj().T)
    for v in (left, right):
        same(np.linalg.norm(v, axis=0), 1)
        weights = (1 - np.arange(4) / 32)[:, None]
        lead = np.take_along_axis(v, (np.abs(v) * weights).argmax(0)[None], 0)
        assert (lead.real > 0).all() and abs(lead.imag).max() < 1e-12
    assert len(la.eig(x, compute_left_eigenvectors=False)) == 2
    for part in eager_and_compiled(jnp.linalg.eig, np.full((2, 2), np.nan)):
        assert np.isnan(part).all()


def test_derivatives_of_equal_eigenvalues() -> None:
    """The sum of equal eigenvalues has a derivative, their vectors have none."""
    total = effax.grad(lambda x: jnp.sum(jnp.linalg.eigvals(x).real ** 2))(2 * jnp.eye(2))
    same(total, 4 * np.eye(2))
    moved = effax.jvp(lambda x: jnp.linalg.eig(x).eigenvectors, (np.eye(2),), (A[:2, :2],))[1]
    assert np.isnan(moved).any()


@both_dtypes
def test_schur_form(x: Any) -> None:
    t, q = eager_and_compiled(la.schur, x)
    same(q @ t @ q.conj().T, x)
    same(q.conj().T @ q, np.eye(4))
    assert abs(np.tril(t, -1 if x.dtype.kind == "c" else -2)).max() < 1e-12
    assert len(la.schur(x, compute_schur_vectors=False)) == 1
    with pytest.raises(NotApplicable, match="blocks on the diagonal"):
        effax.jvp(la.schur, (x,), (x,))


@both_dtypes
def test_hessenberg_and_tridiagonal_forms_are_those_of_lapack(x: Any) -> None:
    for found, wanted in zip(
        eager_and_compiled(la.hessenberg, x), lapack("gehrd", x)(x)[:2], strict=True
    ):
        same(found, wanted)
    name, hermitian = ("hetrd", x + x.conj().T) if x.dtype.kind == "c" else ("sytrd", x + x.T)
    for lower in (True, False):
        packed, *parts = eager_and_compiled(
            lambda x, a=lower: la.tridiagonal(x, lower=a), hermitian
        )
        wanted = lapack(name, x)(hermitian, lower=lower)
        kept = np.tril if lower else np.triu
        for found, other in zip(
            (kept(packed), *parts), (kept(wanted[0]), *wanted[1:4]), strict=True
        ):
            same(found, other)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_pivoted_qr_and_rectangular_lu(shape: tuple[int, int]) -> None:
    x = normal(*shape, dtype="complex128")
    found = eager_and_compiled(lambda x: la.qr(x, pivoting=True, full_matrices=False), x)
    wanted = scipy_linalg.qr(x, pivoting=True, mode="economic")
    for a, b in zip(found, wanted, strict=True):
        same(a, b)
    lu, pivots, order = eager_and_compiled(la.lu, x)
    same(lu, scipy_linalg.lu_factor(x)[0])
    np.testing.assert_array_equal(la.lu_pivots_to_permutation(pivots, shape[0]), order)
    u, s, vh = eager_and_compiled(la.svd, x.real)
    assert (u.shape, vh.shape) == ((shape[0],) * 2, (shape[1],) * 2)
    same((u[:, :3] * s) @ vh[:3], x.real)


def test_subsets_of_values() -> None:
    u, s, vh = jnp.linalg.svd(A, full_matrices=False, subset_by_index=(1, 3))
    whole = np.linalg.svd(A)
    same(s, whole[1][1:3])
    same((u * s) @ vh, (whole[0] * np.array([0, 1, 1, 0]) * whole[1]) @ whole[2])
    assert la.eigh(A + A.T, subset_by_index=(0, 2))[0].shape == (4, 2)
    for bad in ((0, 5), (2, 1), (-1, 2)):
        with pytest.raises(BadArgument, match="subset_by_index"):
            la.svd(A, compute_uv=False, subset_by_index=bad)
    with pytest.raises(BadArgument, match="subset"):
        la.svd(A, subset_by_index=(0, 2))


def test_products_and_updates() -> None:
    r, w = np.triu(A), B[0, 0]
    (updated,) = eager_and_compiled(la.cholesky_update, r, w)
    same(updated.T @ updated, r.T @ r + np.outer(w, w))
    (found,) = eager_and_compiled(lambda a, c: la.symmetric_product(a, c, alpha=2, beta=3), A, r)
    same(found, 2 * A @ A.T + 3 * r)
    full = la.symmetric_product(A, r, beta=1.0, symmetrize_output=True)
    same(full, np.tril(A @ A.T + r) + np.tril(A @ A.T + r, -1).T)
    with pytest.raises(IllTyped, match="do not fit"):
        la.cholesky_update(Z, Z[0])
    with pytest.raises(IllTyped, match="do not fit"):
        la.symmetric_product(A, A[:3])


@both_dtypes
def test_polar_factors_by_halley_iterations(x: Any) -> None:
    u, h, steps, converged = la.qdwh(x)
    for found, wanted in zip((u, h), scipy_linalg.polar(x), strict=True):
        same(found, wanted)
    assert int(steps) <= 7 and bool(converged)
    same(effax.jit(lambda x: la.qdwh(x)[0])(x), u)
    part = la.qdwh(x, dynamic_shape=(3, 2))[0]
    same(part[:3, :2], la.qdwh(x[:3, :2])[0])
    assert not np.asarray(part[3:]).any() and not bool(la.qdwh(x, max_iterations=1)[3])
    with pytest.raises(BadArgument, match="columns"):
        la.qdwh(x[:2])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tridiagonal_systems_with_zeros_on_the_diagonal(n: int) -> None:
    dl, d, du = normal(3, n, seed=2)
    d = np.where(np.arange(n) == 0, n == 1, d)
    b = normal(n, 2)
    dense = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    (found,) = eager_and_compiled(la.tridiagonal_solve, dl, d, du, b)
    np.testing.assert_allclose(dense @ found, b, atol=1e-9)
    check_grads(la.tridiagonal_solve, (dl, d, du, b), 1, rtol=1e-4, atol=1e-4)
    zero = np.zeros(n)
    assert np.isfinite(la.tridiagonal_solve(zero, zero, zero, b, perturb_singular=True)).all()
    assert not np.isfinite(la.tridiagonal_solve(zero, zero, zero, b)).all()
    with pytest.raises(IllTyped, match="do not fit"):
        la.tridiagonal_solve(dl, d, du, b[:, 0])


def test_derivatives_of_forms() -> None:
    check_grads(la.hessenberg, (A,), 2, rtol=1e-6, atol=1e-6)
    check_grads(la.tridiagonal, (Z,), rtol=1e-6, atol=1e-6)
    check_grads(la.cholesky_update, (np.triu(A), B[0, 0]), 2, rtol=1e-6, atol=1e-6)
    check_grads(lambda x: la.qr(x, pivoting=True)[:2], (A,), rtol=1e-6, atol=1e-6)
