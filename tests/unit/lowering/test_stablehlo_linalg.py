"""Factorisations of matrices: XLA agrees with the evaluator,

by the portable programs and by LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive
from effax.ir.prims import linalg
from effax.lowering.rules.default import DEFAULT, HOST_LIBRARIES
from effax.lowering.writer import LoweringRules
from tests.unit.lowering.compiled import Array, applied, module, run, samples

pytestmark = pytest.mark.slow

TOLERANCE = {"float32": 3e-5, "float64": 1e-11, "complex64": 1e-4, "complex128": 1e-11}
SQUARE: Final[tuple[Primitive, ...]] = (
    linalg.Cholesky(),
    linalg.Lu(),
    linalg.Qr(),
    linalg.Eigh(),
    linalg.Svd(),
)
BOOKS: Final = (DEFAULT, HOST_LIBRARIES)

on_both = pytest.mark.parametrize("rules", BOOKS, ids=("anywhere", "host"))


def both(prim: Primitive, *args: Array, rules: LoweringRules) -> list[tuple[Array, Array]]:
    """Return each result as compiled, and as evaluated."""
    program = applied(prim, *args)
    found, wanted = run(program, args, rules), evaluate(program, args)
    return list(zip(found, map(np.asarray, wanted), strict=True))


def agree(prim: Primitive, *args: Array, rules: LoweringRules) -> list[Array]:
    bound = TOLERANCE[args[0].dtype.name]
    pairs = both(prim, *args, rules=rules)
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)
    return [found for found, _ in pairs]


def adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)))


@on_both
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_squares(dtype: str, rules: LoweringRules) -> None:
    x = samples(dtype, (2, 4, 4))
    positive = (x @ adjoint(x) + 2 * np.eye(4)).astype(dtype)
    agree(linalg.Cholesky(), positive, rules=rules)
    lu, pivots, order = agree(linalg.Lu(), x, rules=rules)
    agree(linalg.Lu(), x[0], rules=rules)
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
        agree(linalg.TriangularSolve(lower, op, unit), positive, x[..., :3], rules=rules)
    if "complex" not in dtype:
        agree(linalg.Eigh(), positive, rules=rules)


@on_both
@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (4, 3)), ("complex64", (3, 4)), ("float64", (2, 3, 3))]
)
def test_any_shape(dtype: str, shape: Sequence[int], rules: LoweringRules) -> None:
    x = samples(dtype, tuple(shape))
    agree(linalg.Qr(), x, rules=rules)
    agree(linalg.Qr(full=True), x, rules=rules)
    bound = TOLERANCE[dtype]
    agree(linalg.Svd(vectors=False), x, rules=rules)
    if dtype != "complex64":
        agree(linalg.Svd(), x, rules=rules)
    (u, _), (s, wanted), (vh, _) = both(linalg.Svd(), x, rules=rules)
    np.testing.assert_allclose(s, wanted, rtol=bound, atol=bound)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, rtol=bound, atol=bound)
    for columns in (u, adjoint(vh)):
        eye = np.broadcast_to(np.eye(s.shape[-1]), (*s.shape, s.shape[-1]))
        np.testing.assert_allclose(adjoint(columns) @ columns, eye, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 1), (2, 3, 2, 5), (2, 5, 2)])
def test_the_host_in_every_shape_and_dtype(shape: Sequence[int], dtype: str) -> None:
    """LAPACK's factors equal the evaluator's, phases of complex columns included."""
    x = samples(dtype, tuple(shape))
    for prim in (linalg.Qr(), linalg.Qr(full=True), linalg.Svd()):
        agree(prim, x, rules=HOST_LIBRARIES)


@on_both
def test_complex_eigenvectors(rules: LoweringRules) -> None:
    x = samples("complex64", (3, 3))
    # The imaginary part of the diagonal is ignored, and elements above it are not read.
    h = x + adjoint(x)
    given = (np.tril(h) + 1j * np.eye(3) + np.triu(np.full((3, 3), np.nan), 1)).astype(x.dtype)
    (w, wanted), (v, _) = both(linalg.Eigh(), given, rules=rules)
    np.testing.assert_allclose(w, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(h @ v, v * w, rtol=1e-4, atol=1e-4)


@on_both
def test_less_than_full_rank(rules: LoweringRules) -> None:
    """Vectors of singular values of 0 complete the others to a basis."""
    for x in (np.zeros((3, 2), np.float32), np.outer([1, 2, 3], [1, -1]).astype(np.float32)):
        (u, _), (s, wanted), (vh, _) = both(linalg.Svd(), x, rules=rules)
        np.testing.assert_allclose(s, wanted, atol=1e-5)
        np.testing.assert_allclose((u * s) @ vh, x, atol=1e-5)
        np.testing.assert_allclose(u.T @ u, np.eye(2), atol=1e-5)
        np.testing.assert_allclose(vh @ vh.T, np.eye(2), atol=1e-5)


@on_both
def test_failures_are_nan_and_empty_matrices_are_empty(rules: LoweringRules) -> None:
    """A matrix that fails does not affect others of the batch, nor the pivots of other rows."""
    bad = np.array([[[1, 0], [0, -1]], [[4, 0], [0, 9]], [[0, 0], [0, 0]]], np.float32)
    for factors in both(linalg.Cholesky(), bad, rules=rules)[0]:
        assert np.isnan(factors[[0, 2]]).all()
        np.testing.assert_array_equal(factors[1], [[2, 0], [0, 3]])
    holes = np.array([[[2, 1], [1, 2]], [[2, 1], [np.nan, 2]]], np.float32)
    for prim in SQUARE:
        for found, wanted in both(prim, holes, rules=rules) if prim != linalg.Qr() else ():
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
            assert found.dtype.kind == "i" or np.isnan(found[1]).all()
            assert np.isfinite(found[0]).all()
    for prim in SQUARE:
        agree(prim, np.zeros((2, 0, 0), np.float32), rules=rules)
        agree(prim, np.zeros((0, 3, 3), np.float32), rules=rules)
    for prim in (linalg.Qr(), linalg.Qr(full=True), linalg.Svd()):
        agree(prim, np.zeros((0, 2), np.float32), rules=rules)
        agree(prim, np.zeros((3, 0), np.float32), rules=rules)
    singular = np.array([[0, 1], [0, 2]], np.float32)
    for have, ct_spec in both(linalg.Lu(), singular, rules=rules):
        np.testing.assert_array_equal(have, ct_spec)


@on_both
def test_a_pivot_is_the_first_of_the_greatest(rules: LoweringRules) -> None:
    """Complex numbers are compared by the sum of the magnitudes of their parts."""
    tied = np.array([[1, 2, 3], [-1, 4, 1], [1, 1, 4]], np.float32)
    _, pivots, order = agree(linalg.Lu(), tied, rules=rules)
    assert pivots.tolist() == [0, 1, 2] and order.tolist() == [0, 1, 2]
    # |3| + |3| is more than |5|, which is more than the modulus of 3 + 3i.
    mixed = np.array([[5, 1], [3 + 3j, 2]], np.complex64)
    _, pivots, _ = agree(linalg.Lu(), mixed, rules=rules)
    assert pivots.tolist() == [1, 1]


def test_portable_modules_call_no_library() -> None:
    """Only modules that run in this process call LAPACK."""
    x = np.eye(3, dtype=np.float32)
    for prim in SQUARE:
        program = applied(prim, x)
        assert "lapack_" in module(program, rules=HOST_LIBRARIES).text
        assert "lapack_" not in module(program).text
