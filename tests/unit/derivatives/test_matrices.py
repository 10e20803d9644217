"""Derivatives of functions of matrices where singular values or eigenvalues coincide, or are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.testing import check_grads

la: Any = jnp.linalg


def unitary(n: int, seed: int, dtype: str = "float64") -> np.ndarray:
    """Return a unitary matrix."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, n, n))
    return np.asarray(np.linalg.qr(parts[0] + (1j * parts[1] if dtype == "complex128" else 0))[0])


def of_values(values: list[float], shape: tuple[int, int], dtype: str = "float64") -> np.ndarray:
    """Return a matrix with these singular values."""
    m, n = shape
    k = len(values)
    return np.asarray((unitary(m, 0, dtype)[:, :k] * values) @ unitary(n, 1, dtype)[:k])


DTYPES = ("float64", "complex128")
SHAPES = ((2, 2), (4, 2), (2, 3), (3, 3))


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


def check(f: Callable[..., Any], a: np.ndarray, order: int = 2) -> None:
    check_grads(f, (a,), order=order, atol=1e-6, rtol=1e-6)
    along = np.cos(np.arange(a.size)).reshape(a.shape).astype(a.dtype)
    expected = effax.jvp(f, (a,), (along,))[1]
    found = effax.jit(lambda a: effax.jvp(f, (a,), (along,))[1])(a)
    for x, y in zip(effax.tree.leaves(found), effax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_the_derivative_of_pinv_at_the_identity() -> None:
    for jacobian in (effax.jacrev, effax.jacfwd):
        for made in (jacobian(la.pinv), effax.jit(jacobian(la.pinv))):
            np.testing.assert_allclose(made(np.eye(2))[0, 1], [[0, -1], [0, 0]], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_pinv_of_equal_singular_values(shape: tuple[int, int], dtype: str) -> None:
    check(la.pinv, of_values([2.0] * min(shape), shape, dtype))
    check(lambda a: la.pinv(a, 1e-3), of_values([2.0] * min(shape), shape, dtype), order=1)


@pytest.mark.slow
def test_pinv_drops_values_that_are_not_small() -> None:
    """The values 3, 3 are inverted, and 1, 1 are not: both turn into each other."""
    a = of_values([3.0, 3.0, 1.0, 1.0], (5, 4), "complex128")
    check(lambda a: la.pinv(a, 0.5), a, order=1)
    check(lambda a: la.pinv(a, 0.5), of_values([3.0, 2.5, 1.0, 0.5], (4, 5)))


@pytest.mark.slow
def test_pinv_of_matrices_of_one_rank() -> None:
    """At a matrix of lower rank, the derivative is that along matrices of this rank."""
    x, y = np.array([1.0, 2.0, -1.0]), np.array([1.0, 0.5])
    check(lambda x: la.pinv(jnp.outer(x, y) + jnp.outer(x, x[:2])), x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", range(5))
def test_det_of_every_rank(rank: int, dtype: str) -> None:
    check(la.det, of_values([2.0] * rank + [0.0] * (4 - rank), (4, 4), dtype))


@pytest.mark.slow
@pytest.mark.parametrize("n", range(1, 7))
def test_the_gradient_of_det_is_the_matrix_of_cofactors(n: int) -> None:
    a = np.arange(float(n * n)).reshape(n, n) % 5
    a[-1] = a[0]
    minors = [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) * (-1) ** (i + j) for j in range(n)]
        for i in range(n)
    ]
    for gradient in (effax.grad(la.det), effax.jit(effax.grad(la.det)), effax.jacfwd(la.det)):
        np.testing.assert_allclose(gradient(a), minors, atol=1e-9)
    batch = np.stack([a, np.eye(n), 0 * a])
    found = effax.vmap(effax.grad(la.det))(batch)
    zero = np.eye(1) if n == 1 else np.zeros((n, n))
    np.testing.assert_allclose(found, np.stack([np.asarray(minors), np.eye(n), zero]), atol=1e-9)
    whole = effax.grad(lambda a: jnp.sum(la.det(a)))(batch)
    np.testing.assert_allclose(whole, found, atol=1e-12)


@pytest.mark.slow
def test_the_second_derivative_of_det_where_the_first_is_0() -> None:
    """At rank n - 2, d² det is Σ (da_ii·da_jj - da_ij·da_ji) in the space of the zeros."""
    bend = np.zeros((4, 4, 4, 4))
    bend[2, 2, 3, 3] = bend[3, 3, 2, 2] = 6
    bend[2, 3, 3, 2] = bend[3, 2, 2, 3] = -6
    a = np.diag([2.0, 3.0, 0.0, 0.0])
    compiled: Any = effax.jit(effax.jacrev(effax.grad(la.det)))
    for made in (effax.hessian(la.det), compiled):
        np.testing.assert_allclose(made(a), bend, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_nuclear_norm_of_equal_singular_values(shape: tuple[int, int], dtype: str) -> None:
    check(lambda a: la.norm(a, "nuc"), of_values([2.0] * min(shape), shape, dtype))


def test_the_second_derivative_of_the_nuclear_norm_of_a_singular_matrix_is_nan() -> None:
    bend = effax.hessian(lambda a: la.norm(a, "nuc"))
    assert np.isnan(bend(np.diag([1.0, 0.0]))).any()


SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "eigvalsh": lambda a: jnp.sum(la.eigvalsh(a) ** 2),
    "eigh": lambda a: jnp.sum(la.eigh(a).eigenvalues ** 2),
    "svdvals": lambda a: jnp.sum(la.svdvals(a) ** 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_functions_of_equal_values_have_derivatives(name: str) -> None:
    """The second derivative does not follow from those of the single values: it is nan."""
    f = SYMMETRIC[name]
    a = 3 * np.eye(2)
    for gradient in (effax.grad(f), effax.jit(effax.grad(f)), effax.jacfwd(f)):
        np.testing.assert_allclose(gradient(a), 2 * a, atol=1e-12)
    assert np.isnan(effax.hessian(f)(a)).any()


WITHOUT_VECTORS: dict[str, Callable[[Any], Any]] = {
    "inv": la.inv,
    "slogdet": lambda a: la.slogdet(a).logabsdet,
    "cholesky": lambda a: la.cholesky(a @ a.T),
    "qr": lambda a: list(la.qr(a)),
    "matrix_power": lambda a: la.matrix_power(a, -3),
    "solve": lambda a: la.solve(a, jnp.ones(3)),
    "norm 1": lambda a: la.norm(a, 1),
    "norm fro": la.norm,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_VECTORS)
def test_functions_without_singular_vectors_where_values_coincide(name: str) -> None:
    check(WITHOUT_VECTORS[name], unitary(3, 4))


def parts_by_svd(a: Any) -> Any:
    u, s, vh = la.svd(a, full_matrices=False)
    return (u * s) @ vh


def parts_by_eigh(a: Any) -> Any:
    w, v = la.eigh(a)
    return (v * w) @ v.T


UNDETERMINED: dict[str, Callable[[Any], Any]] = {
    "the product of factors by svd": parts_by_svd,
    "the product of factors by eigh": parts_by_eigh,
    "left vectors": lambda a: la.svd(a).U,
    "right vectors": lambda a: la.svd(a).Vh,
    "eigenvectors": lambda a: la.eigh(a).eigenvectors,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNDETERMINED)
def test_derivatives_of_vectors_of_equal_values_are_nan(name: str) -> None:
    """No derivative of the vectors is right for all functions of them: docs/derivatives.md."""
    f = UNDETERMINED[name]
    found = effax.jit(lambda a: (effax.jacrev(f)(a), effax.jacfwd(f)(a)))
    for a in (np.eye(2), np.zeros((2, 2))):
        for jacobian in (*found(a), effax.jacrev(f)(a), effax.jacfwd(f)(a)):
            assert np.isnan(jacobian[0, 1]).any()


def test_the_vector_of_a_simple_value_has_a_derivative_beside_equal_ones() -> None:
    """In forward mode: in reverse mode, the vectors that are not used have the cotangent 0."""
    a, da = np.diag([1.0, 1.0, 3.0]), np.arange(9.0).reshape(3, 3)

    def last(a: Any) -> Any:
        return la.eigh(a).eigenvectors[:, 2]

    for f in (last, effax.jit(last)):
        moved = effax.jvp(f, (a,), (da + da.T,))[1]
        np.testing.assert_allclose(moved, [(da + da.T)[0, 2] / 2, (da + da.T)[1, 2] / 2, 0])


def test_singular_vectors_of_zero_are_not_determined() -> None:
    tall = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assert np.isnan(effax.jvp(parts_by_svd, (tall,), (np.ones((3, 2)),))[1]).any()
