"""Factorisations of matrices: what XLA computes is what the evaluator computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from effax.ir.evaluate import evaluate
from effax.ir.primitive import Primitive
from effax.ir.prims import linalg
from tests.unit.lowering.compiled import Array, applied, run, samples

TOLERANCE = {"float32": 3e-5, "float64": 1e-11, "complex64": 1e-4}


def both(prim: Primitive, *args: Array) -> list[tuple[Array, Array]]:
    """Each result as compiled, and as evaluated."""
    program = applied(prim, *args)
    return list(zip(run(program, args), map(np.asarray, evaluate(program, args)), strict=True))


def agree(prim: Primitive, *args: Array) -> list[Array]:
    bound = TOLERANCE[args[0].dtype.name]
    pairs = both(prim, *args)
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)
    return [found for found, _ in pairs]


def adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_squares(dtype: str) -> None:
    x = samples(dtype, (2, 4, 4))
    positive = (x @ adjoint(x) + 2 * np.eye(4)).astype(dtype)
    agree(linalg.Cholesky(), positive)
    lu, pivots, order = agree(linalg.Lu(), x)
    agree(linalg.Lu(), x[0])
    low, up = np.tril(lu, -1) + np.eye(4), np.triu(lu)
    np.testing.assert_allclose(
        low @ up, np.take_along_axis(x, order[..., None], 1), rtol=1e-4, atol=1e-4
    )
    assert (pivots >= np.arange(4)).all()
    for lower, op, unit in (
        (True, linalg.Op.PLAIN, False),
        (False, linalg.Op.TRANSPOSE, True),
        (True, linalg.Op.ADJOINT, False),
    ):
        agree(linalg.TriangularSolve(lower, op, unit), positive, x)
    if dtype != "complex64":
        agree(linalg.Eigh(), positive)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (4, 3)), ("complex64", (3, 4)), ("float64", (2, 3, 3))]
)
def test_any_shape(dtype: str, shape: Sequence[int]) -> None:
    x = samples(dtype, tuple(shape))
    agree(linalg.Qr(), x)
    agree(linalg.Qr(full=True), x)
    bound = TOLERANCE[dtype]
    if dtype != "complex64":
        agree(linalg.Svd(), x)
    (u, _), (s, wanted), (vh, _) = both(linalg.Svd(), x)
    np.testing.assert_allclose(s, wanted, rtol=bound, atol=bound)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, rtol=bound, atol=bound)
    for columns in (u, adjoint(vh)):
        eye = np.broadcast_to(np.eye(s.shape[-1]), (*s.shape, s.shape[-1]))
        np.testing.assert_allclose(adjoint(columns) @ columns, eye, rtol=bound, atol=bound)


def test_complex_eigenvectors() -> None:
    x = samples("complex64", (3, 3))
    h = x + adjoint(x)
    (w, wanted), (v, _) = both(linalg.Eigh(), h)
    np.testing.assert_allclose(w, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(h @ v, v * w, rtol=1e-4, atol=1e-4)


def test_less_than_full_rank() -> None:
    """Vectors of singular values that are 0 complete the others to a basis."""
    for x in (np.zeros((3, 2), np.float32), np.outer([1, 2, 3], [1, -1]).astype(np.float32)):
        (u, _), (s, wanted), (vh, _) = both(linalg.Svd(), x)
        np.testing.assert_allclose(s, wanted, atol=1e-5)
        np.testing.assert_allclose((u * s) @ vh, x, atol=1e-5)
        np.testing.assert_allclose(u.T @ u, np.eye(2), atol=1e-5)
        np.testing.assert_allclose(vh @ vh.T, np.eye(2), atol=1e-5)


def test_what_fails_is_nan_and_what_is_empty_is_empty() -> None:
    bad = np.array([[[1, 0], [0, -1]], [[4, 0], [0, 9]]], np.float32)
    (found, wanted), *_ = both(linalg.Cholesky(), bad)
    for factors in (found, wanted):
        assert np.isnan(factors[0]).any()
        np.testing.assert_array_equal(factors[1], [[2, 0], [0, 3]])
    nothing = np.zeros((2, 0, 0), np.float32)
    for prim in (linalg.Cholesky(), linalg.Lu(), linalg.Qr(), linalg.Eigh(), linalg.Svd()):
        for have, want in both(prim, nothing):
            assert have.shape == want.shape
    singular = np.array([[0, 1], [0, 2]], np.float32)
    for have, want in both(linalg.Lu(), singular):
        np.testing.assert_array_equal(have, want)
