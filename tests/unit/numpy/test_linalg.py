"""Linear algebra against NumPy, and properties of factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.analysis.queries import walk
from effax.ir.errors import BadArgument, EffaxError, IllTyped, NotApplicable
from tests.unit.transforms.array_cases import normal

A, Z = normal(2, 4, 4, dtype="float32"), normal(3, 3, dtype="complex64")
TALL, WIDE = normal(5, 3, dtype="float32"), normal(2, 3, 5, dtype="float32")
B, V = normal(2, 4, 2, dtype="float32"), normal(4, dtype="float32")
S = A @ np.swapaxes(A, -1, -2) + 2 * np.eye(4, dtype=np.float32)

SAME: dict[str, Any] = {
    "cholesky": lambda m: m.linalg.cholesky(S),
    "cond": lambda m: m.linalg.cond(TALL),
    "cond -2": lambda m: m.linalg.cond(A, -2),
    "cond 1": lambda m: m.linalg.cond(A, 1),
    "det": lambda m: m.linalg.det(A),
    "det complex": lambda m: m.linalg.det(Z),
    "det 2": lambda m: m.linalg.det(A[:, :2, :2]),
    "eigvalsh": lambda m: m.linalg.eigvalsh(S),
    "eigvals": lambda m: m.sort(m.abs(m.linalg.eigvals(Z))),
    "inv": lambda m: m.linalg.inv(A),
    "inv complex": lambda m: m.linalg.inv(Z),
    "matrix_power": lambda m: m.linalg.matrix_power(A, -3),
    "matrix_rank": lambda m: m.linalg.matrix_rank(np.outer(V, V)),
    "norm 2": lambda m: m.linalg.norm(TALL, 2),
    "norm -2": lambda m: m.linalg.norm(TALL, -2, keepdims=True),
    "norm nuc": lambda m: m.linalg.norm(WIDE, "nuc", axis=(2, 1)),
    "pinv": lambda m: m.linalg.pinv(WIDE),
    "pinv of low rank": lambda m: m.linalg.pinv(np.outer(V, V), 1e-4),
    "qr": lambda m: m.linalg.qr(TALL),
    "qr complete": lambda m: m.linalg.qr(TALL, "complete"),
    "qr r": lambda m: m.linalg.qr(WIDE, "r"),
    "slogdet": lambda m: m.linalg.slogdet(A),
    "slogdet of 0": lambda m: m.linalg.slogdet(np.zeros((2, 2), np.float32)),
    "slogdet complex": lambda m: m.linalg.slogdet(Z),
    "solve": lambda m: m.linalg.solve(A, B),
    "solve complex": lambda m: m.linalg.solve(Z, Z),
    "solve a vector": lambda m: m.linalg.solve(A[0], V),
    "svdvals": lambda m: m.linalg.svd(WIDE, compute_uv=False),
}


def flat(x: Any) -> list[Any]:
    return [leaf for y in x for leaf in flat(y)] if isinstance(x, tuple) else [x]


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", SAME)
def test_results_agree_with_numpy(name: str) -> None:
    for ours, theirs in zip(flat(SAME[name](jnp)), flat(SAME[name](np)), strict=True):
        assert ours.shape == np.shape(theirs)
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("x", [TALL, WIDE, Z], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors(x: np.ndarray, full: bool) -> None:
    u, s, vh = map(np.asarray, jnp.linalg.svd(x, full))
    k = s.shape[-1]
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=1e-5)
    for q in (u, np.swapaxes(vh.conj(), -1, -2)):
        eye = np.eye(q.shape[-1])
        gram = np.swapaxes(q.conj(), -1, -2) @ q
        np.testing.assert_allclose(gram, np.broadcast_to(eye, gram.shape), atol=1e-5)


def test_eigenvectors() -> None:
    w, v = map(np.asarray, jnp.linalg.eigh(S))
    np.testing.assert_allclose(S @ v, v * w[:, None, :], atol=1e-4)
    lower = jnp.linalg.eigh(np.tril(S), symmetrize_input=False)
    np.testing.assert_allclose(np.asarray(lower.eigenvalues), w, rtol=1e-4)
    upper = jnp.linalg.eigh(np.triu(S), UPLO="U", symmetrize_input=False)
    np.testing.assert_allclose(np.asarray(upper.eigenvectors), v, atol=1e-4)


def test_narrow_floats_are_factorised_in_float32() -> None:
    x = jnp.asarray(S, "bfloat16")
    for found in (jnp.linalg.cholesky(x), *jnp.linalg.eigh(x), jnp.linalg.inv(x)):
        assert found.dtype == x.dtype


def test_gradients_at_singular_and_degenerate_matrices() -> None:
    """A determinant of 0 has a gradient, and so have sums of equal eigenvalues."""
    singular = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], np.float32)
    np.testing.assert_allclose(
        np.asarray(effax.grad(jnp.linalg.det)(singular)), [[4, 4, -4], [-2, -2, 2], [0, 0, 0]]
    )
    total = effax.grad(lambda x: jnp.sum(jnp.linalg.eigh(x).eigenvalues ** 2))
    np.testing.assert_allclose(np.asarray(total(np.eye(3, dtype=np.float32))), np.diag([2.0, 2, 2]))


def test_a_batch_of_right_hand_sides_shares_one_factorization() -> None:
    a, ys = normal(4, 4) + 4 * np.eye(4, dtype=np.float32), normal(5, 4, seed=1)
    many = effax.vmap(jnp.linalg.solve, (None, 0))
    np.testing.assert_allclose(many(a, ys), np.linalg.solve(a, ys.T).T, rtol=1e-5)
    # The matrix is not copied per batch element; each triangle is solved with once.
    text = str(effax.make_jaxpr(many)(a, ys))
    assert "f32[5,4,4]" not in text and "triangular_solve" in text


@pytest.mark.slow
def test_the_derivative_of_a_determinant_is_a_trace() -> None:
    """d log det(a) = tr(a⁻¹·da), whose imaginary part turns the sign of complex matrices."""
    real = normal(4, 4) + 4 * np.eye(4, dtype=np.float32)
    matrix = real + 1j * normal(4, 4, seed=1)
    da = normal(4, 4, seed=2) + 1j * normal(4, 4, seed=3)
    for a, direction in ((real, da.real.astype(np.float32)), (matrix, da.astype(np.complex64))):
        (sign, _), (turn, grown) = effax.jvp(jnp.linalg.slogdet, (a,), (direction,))
        trace = np.trace(np.linalg.solve(a, direction))
        np.testing.assert_allclose(grown, trace.real, rtol=1e-4)
        np.testing.assert_allclose(turn, sign * 1j * trace.imag, rtol=1e-4, atol=1e-6)

    def size(a: Any) -> Any:
        return jnp.linalg.slogdet(a)[1]

    slopes = effax.jit(effax.grad(size))(real)
    np.testing.assert_allclose(slopes, np.linalg.inv(real).T, rtol=1e-4, atol=1e-5)


def test_derivatives_of_long_pseudo_inverses_are_not_square() -> None:
    for shape in ((500, 2), (2, 500)):
        a = np.ones(shape, np.float32)
        jaxpr = effax.make_jaxpr(lambda x: effax.jvp(jnp.linalg.pinv, (x,), (x,)))(a).jaxpr
        assert max(v.type.size for place in walk(jaxpr) for v in place.eqn.outs) == 1000


def test_factors_without_columns_and_residuals_of_low_rank() -> None:
    empty = np.ones((2, 0), np.float32)
    q, dq = effax.jvp(lambda x: jnp.linalg.qr(x, "complete").Q, (empty,), (empty,))
    assert q.shape == dq.shape == (2, 2)
    assert not np.any(dq)
    for a, size in ((np.zeros((3, 2)), 0), (np.eye(3, 2), 1)):
        assert jnp.linalg.lstsq(a, np.ones(3), numpy_resid=True)[1].shape == (size,)


def test_bad_input() -> None:
    for f in (jnp.linalg.det, jnp.linalg.inv, jnp.linalg.cholesky, jnp.linalg.eigh):
        with pytest.raises(IllTyped, match="takes square matrices"):
            f(TALL)
    with pytest.raises(IllTyped, match="does not fit"):
        jnp.linalg.solve(A, V[:3])
    with pytest.raises(BadArgument, match="unknown mode"):
        jnp.linalg.qr(A, "economic")
    with pytest.raises(BadArgument, match="triangle"):
        jnp.linalg.eigh(A, "B")
    with pytest.raises(BadArgument, match="unknown norm"):
        jnp.linalg.norm(TALL, 3)
    with pytest.raises(NotApplicable, match="not determined"):
        effax.grad(lambda x: jnp.sum(jnp.linalg.qr(x, "complete").R))(TALL)
    with pytest.raises(EffaxError):
        jnp.linalg.svd(V)
