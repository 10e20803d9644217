"""Reductions by functions, of axes and of windows, against JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped
from effax.testing import check_grads
from tests.unit.transforms.array_cases import normal

X = normal(4, 5, 3, dtype="float32")
I = np.arange(20, dtype=np.int32).reshape(4, 5)  # noqa: E741


def calls(m: Any) -> dict[str, Any]:
    lax, np_ = m.lax, m.numpy
    one, zero, low = np.float32(1), np.float32(0), np.float32(-np.inf)
    window = lax.reduce_window
    return {
        "sum": lax.reduce(X, zero, lax.add, (0, 2)),
        "max": lax.reduce(X, low, np_.maximum, (1,)),
        "or": lax.reduce(I, np.int32(0), lax.bitwise_or, (0,)),
        "own": lax.reduce(X, one, lambda a, b: a * b, (1, 0)),
        "pair": lax.reduce(
            (X, X * 2), (low, zero), lambda a, b: (lax.max(a[0], b[0]), a[1] + b[1]), (2,)
        ),
        "pooled": window(X, low, lax.max, (2, 2, 1), (2, 1, 1), "SAME"),
        "summed": window(X, zero, lax.add, (3, 1, 2), (1, 2, 1), [(1, 0), (0, 0), (0, 2)]),
        "apart": window(X, zero, lax.add, (2, 2, 2), (1, 1, 1), "VALID", (1, 2, 1), (2, 1, 1)),
        "integers": window(I, np.int32(99), lax.min, (2, 3), (2, 2), "SAME_LOWER"),
        "two": window(
            (X, X[::-1]), (zero, one), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 2, 2)
        ),
        "dtypes": window(
            (I, I / np.float32(8)),
            (np.int32(0), low),
            lambda a, b: (a[0] | b[0], lax.max(a[1], b[1])),
            *((2, 3), (2, 1), "SAME"),
        ),
        "place of the greatest": window(
            [X, np.broadcast_to(np.arange(5, dtype=np.int32)[:, None], X.shape)],
            [low, np.int32(-1)],
            lambda a, b: [np_.where(a[0] >= b[0], x, y) for x, y in zip(a, b, strict=True)],
            *((1, 3, 1), (1, 2, 1), ((0, 0), (1, 1), (0, 0)), (1, 1, 1), (1, 2, 1)),
        ),
        "product": window(X, one, lax.mul, (2, 2, 2), (1, 2, 3), "VALID"),
    }


@pytest.mark.jax
def test_results_agree_with_jax() -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = calls(effax), calls(jax)
    for name, found in ours.items():
        pairs = zip(effax.tree.leaves(found), effax.tree.leaves(theirs[name]), strict=True)
        for a, b in pairs:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, err_msg=name)


@pytest.mark.slow
def test_compiled_and_differentiated() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME")

    x = normal(4, 5, dtype="float32")
    np.testing.assert_allclose(np.asarray(effax.jit(pooled)(x)), np.asarray(pooled(x)))
    check_grads(pooled, (x,), order=2)
    tied = effax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,))[0])(np.ones(3))
    np.testing.assert_allclose(np.asarray(tied), np.full(3, 1 / 3), rtol=1e-6)
    check_grads(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0.0, (0,)), (x,), order=2)


def _moments(x: Any, y: Any) -> Any:
    """Return the sum and the product of sums of each window."""
    return lax.reduce_window(
        {"s": x, "p": y},
        {"s": 0.0, "p": 1.0},
        lambda a, b: {"s": a["s"] + b["s"], "p": a["p"] * b["p"]},
        (2, 2),
        (1, 2),
        "SAME",
    )


@pytest.mark.slow
def test_transformations_of_windows_of_several_operands() -> None:
    x, y = normal(3, 4, dtype="float32"), normal(3, 4, dtype="float32") + 2
    found = _moments(x, y)
    alone = lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME")
    np.testing.assert_allclose(np.asarray(found["s"]), np.asarray(alone), rtol=1e-6)
    alone = lax.reduce_window(y, 1.0, lax.mul, (2, 2), (1, 2), "SAME")
    np.testing.assert_allclose(np.asarray(found["p"]), np.asarray(alone), rtol=1e-6)
    compiled = effax.jit(_moments)(x, y)
    np.testing.assert_allclose(np.asarray(compiled["p"]), np.asarray(found["p"]), rtol=1e-5)
    check_grads(lambda x, y: effax.tree.leaves(_moments(x, y)), (x, y), order=2)
    batched = effax.vmap(_moments, (0, None))(np.stack([x, 2 * x]), y)
    np.testing.assert_allclose(np.asarray(batched["s"][1]), 2 * np.asarray(found["s"]), rtol=1e-5)
    assert batched["p"].shape == (2, *found["p"].shape)


def test_no_elements() -> None:
    e = np.zeros((0, 3), np.float32)
    np.testing.assert_array_equal(np.asarray(lax.reduce(e, 2.0, lax.add, (0,))), [2, 2, 2])
    own = lax.reduce(e, 2.0, lambda a, b: a + b, (0,))
    np.testing.assert_array_equal(np.asarray(own), [2, 2, 2])
    assert lax.reduce_window(e, 0.0, lax.add, (1, 2)).shape == (0, 2)
    two = lax.reduce_window((e, e), (0.0, 1.0), lambda a, b: a, (1, 2))
    assert [t.shape for t in two] == [(0, 2)] * 2


def test_bad_input() -> None:
    with pytest.raises(IllTyped, match="arrays of one shape"):
        lax.reduce((X, I), (0.0, 0), lambda a, b: a, (0,))
    with pytest.raises(IllTyped, match="reduce_window takes arrays of one shape"):
        lax.reduce_window((X, X), (0.0,), lambda a, b: a, (1, 1, 2))
    for call in (
        lambda f: lax.reduce((X, X), (0.0, 0.0), f, (0,)),
        lambda f: lax.reduce_window((X, X), (0.0, 0.0), f, (2, 1, 1)),
    ):
        with pytest.raises(IllTyped, match="another tree"):
            call(lambda a, b: a[0])
    with pytest.raises(BadArgument, match="positive size"):
        lax.reduce_window(X, 0.0, lax.add, (2, 2))
    with pytest.raises(BadArgument, match="positive size"):
        lax.reduce_window(X, 0.0, lax.add, (2, 2, 0))
