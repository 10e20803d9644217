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


def test_compiled_and_differentiated() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME")

    x = normal(4, 5, dtype="float32")
    np.testing.assert_allclose(np.asarray(effax.jit(pooled)(x)), np.asarray(pooled(x)))
    check_grads(pooled, (x,), order=2)
    tied = effax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,))[0])(np.ones(3))
    np.testing.assert_allclose(np.asarray(tied), np.full(3, 1 / 3), rtol=1e-6)
    check_grads(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0.0, (0,)), (x,), order=2)


def test_no_elements() -> None:
    e = np.zeros((0, 3), np.float32)
    np.testing.assert_array_equal(np.asarray(lax.reduce(e, 2.0, lax.add, (0,))), [2, 2, 2])
    own = lax.reduce(e, 2.0, lambda a, b: a + b, (0,))
    np.testing.assert_array_equal(np.asarray(own), [2, 2, 2])
    assert lax.reduce_window(e, 0.0, lax.add, (1, 2)).shape == (0, 2)


def test_bad_input() -> None:
    with pytest.raises(IllTyped, match="arrays of one shape"):
        lax.reduce((X, I), (0.0, 0), lambda a, b: a, (0,))
    with pytest.raises(BadArgument, match="positive size"):
        lax.reduce_window(X, 0.0, lax.add, (2, 2))
    with pytest.raises(BadArgument, match="positive size"):
        lax.reduce_window(X, 0.0, lax.add, (2, 2, 0))
