"""Sparse arrays against dense ones: products, conversions, gradients, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, tree
from effax.experimental import sparse
from effax.experimental.sparse import BCOO
from effax.ir.errors import BadArgument, IllTyped

RNG = np.random.default_rng(0)
A: Any = (RNG.normal(size=(4, 5)) * (RNG.random((4, 5)) < 0.5)).astype(np.float32)
B: Any = (RNG.normal(size=(5, 3)) * (RNG.random((5, 3)) < 0.5)).astype(np.float32)
X, Y = RNG.normal(size=(5, 2)).astype(np.float32), RNG.normal(size=(2, 4)).astype(np.float32)
S = np.stack([A, A * 2])

pytestmark = pytest.mark.slow


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(sparse.todense(found), wanted, rtol=1e-5, atol=1e-5)


def test_products_and_sums() -> None:
    a: Any = BCOO.fromdense(A)
    b = BCOO.fromdense(B)
    same(a, A)
    for found, wanted in (
        (a @ X, A @ X),
        (a @ X[:, 0], A @ X[:, 0]),
        (Y @ a, Y @ A),
        (jnp.asarray(Y) @ a, Y @ A),
        (Y[0] @ a, Y[0] @ A),
        (a @ b, A @ B),
        (a.T, A.T),
        (2 * a / 4, A / 2),
        (-a + a + a - a, np.zeros_like(A)),
        (a * X[:, 0], A * X[:, 0]),
        (BCOO.fromdense(X[:, 0]) @ X, X[:, 0] @ X),
        (a.sum(), A.sum()),
        (effax.jit(lambda a, x: a @ x)(a, X), A @ X),
        (a.astype(jnp.bfloat16).astype(float), A.astype(jnp.bfloat16)),
    ):
        same(found, wanted)


def test_duplicates_padding_and_order() -> None:
    a: Any = BCOO.fromdense(A)
    double = (a + BCOO.fromdense(A, nse=12)).sum_duplicates()
    assert double.nse == a.nse
    same(double, 2 * A)
    same(effax.jit(lambda a: (a + a).sum_duplicates(nse=20))(a), 2 * A)
    mixed = BCOO((a.data[::-1], a.indices[::-1]), shape=a.shape)
    np.testing.assert_array_equal(mixed.sort_indices().indices, a.indices)
    padded = BCOO.fromdense(A, nse=12)
    same(padded, A)
    same(padded @ X, A @ X)
    same(padded.sum(), A.sum())
    same(sparse.empty((2, 3), nse=2), np.zeros((2, 3)))
    same(sparse.eye(3, 4, -1), np.eye(3, 4, -1))


def test_batches() -> None:
    s: Any = BCOO.fromdense(S, n_batch=1)
    dense_rows = BCOO.fromdense(S, n_dense=1)
    assert (s.shape, s.n_batch, dense_rows.n_dense) == ((2, 4, 5), 1, 1)
    for found in (
        s,
        dense_rows,
        s.sum_duplicates(),
        effax.vmap(lambda m: BCOO.fromdense(m, nse=9))(S),
    ):
        same(found, S)
    for found in (s @ X, effax.vmap(lambda m: m @ X)(s), effax.vmap(lambda m: m.T.T @ X)(s)):
        same(found, S @ X)
    same(s.transpose((0, 2, 1)), S.swapaxes(1, 2))
    same(s @ np.stack([X, X]), S @ X)


def test_gradients() -> None:
    a: Any = BCOO.fromdense(A)
    x = X[:, 0]

    def f(a: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(a @ x))

    slope = np.cos(A @ x)
    for g in (sparse.grad(f)(a, x), effax.jit(sparse.grad(f))(a, x)):
        assert isinstance(g, BCOO) and g.nse == a.nse
        same(g, np.where(A != 0, slope[:, None] * x, 0))
    same(effax.grad(f, 1)(a, x), slope @ A)
    same(effax.grad(lambda d: f(BCOO.fromdense(d, nse=12), x))(A), (A != 0) * slope[:, None] * x)
    value, (ga, gx) = sparse.value_and_grad(f, (0, 1))(a, x)
    same(value, np.sin(A @ x).sum())
    same(gx, slope @ A)
    assert len(tree.leaves(ga)) == 2


def test_bad_input() -> None:
    a: Any = BCOO.fromdense(A)
    with pytest.raises(IllTyped, match="parts of BCOO"):
        BCOO((np.ones(2), np.zeros((3, 1), int)), shape=(4,))
    with pytest.raises(IllTyped, match="parts of BCOO"):
        BCOO((np.ones(3), np.zeros((3, 1))), shape=(4,))
    with pytest.raises(IllTyped, match="do not fit"):
        a @ X.T
    with pytest.raises(IllTyped, match="of one shape"):
        a + a.T
    with pytest.raises(BadArgument, match="stay of it"):
        BCOO.fromdense(S, n_batch=1).transpose((1, 0, 2))
    with pytest.raises(BadArgument, match="fewer axes"):
        BCOO.fromdense(A, n_batch=2, n_dense=1)
    assert repr(tree.map(lambda _: None, a)) == "BCOO(None, None)"


def everything(x: Any, y: Any) -> list[Any]:
    """Return results of all operations that have rules, each on sparse or dense arrays."""
    looped = lax.fori_loop(0, 2, lambda i, c: c * 2, x)
    joined = jnp.concatenate([x, jnp.stack([x[1], x[2, ::-1]])])
    return [
        *(jnp.sin(x) * 2 - x**2 / 3, x * y, y * x, x / (1 + y**2), x + y, y - x, x * x, -x),
        *(x.T @ y, y @ x.T, x @ x.T, jnp.tensordot(x, y, 2), x.reshape(2, 10), x[None, 1:, ::2]),
        *(x.sum(), x.sum(0), jnp.broadcast_to(x[:, None], (4, 2, 5)), looped, joined),
        *(lax.dynamic_slice(x, (y[0, 0].astype(int), 2), (2, 3)), effax.jit(jnp.tanh)(x)),
        *(lax.cond(y[0, 0] > 0, lambda x: x, lambda x: 3 * x, x), sparse.todense(x) + 1),
    ]


def test_functions_of_dense_arrays_are_evaluated_on_sparse_ones() -> None:
    y = RNG.normal(size=(4, 5)).astype(np.float32)
    half = BCOO.fromdense(A / 2, n_batch=1)
    found = sparse.sparsify(everything)(half + half, y)
    for one, wanted in zip(found, everything(jnp.asarray(A), y), strict=True):
        same(one, wanted)
    f = sparse.sparsify(lambda x, y: x.T @ y)
    same(effax.jit(f)(half, y), A.T @ y / 2)


def test_axes_of_every_kind_move() -> None:
    x = np.where(RNG.random((2, 3, 5)) < 0.5, 1.0, 0.0).astype(np.float32)
    for n_batch, n_dense in ((0, 1), (0, 2), (1, 1)):
        m: Any = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
        same(m.reshape(5, 6), x.reshape(5, 6))
        same(m.sum(0), x.sum(0))
        same(sparse.sparsify(lambda a: a.transpose((2, 0, 1)))(m), x.transpose((2, 0, 1)))


def test_an_order_of_axes_is_a_permutation() -> None:
    eye = sparse.eye(2)
    for dimensions in ((0, 0), (0,), (0, 1, 1), (0, 5)):
        with pytest.raises(BadArgument):
            sparse.bcoo_reshape(eye, new_sizes=(4,), dimensions=dimensions)


def test_a_product_of_dense_arrays_has_the_precision() -> None:
    numbers = (((1,), (0,)), ((), ()))
    with pytest.raises(BadArgument):
        sparse.bcoo_dot_general(X, X.T, dimension_numbers=numbers, precision="nonsense")


def test_operations_with_dense_results_are_refused() -> None:
    a = BCOO.fromdense(A)
    with pytest.raises(NotImplementedError, match="would result in dense output"):
        sparse.sparsify(jnp.cos)(a)
    with pytest.raises(NotImplementedError, match="sparse array X and a dense array Y"):
        sparse.sparsify(lambda x: x + 1.0)(a)
    with pytest.raises(NotImplementedError, match="sparse rule for sort"):
        sparse.sparsify(jnp.sort)(a)
