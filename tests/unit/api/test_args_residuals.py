"""Pullbacks with the arguments among their residuals: kept, removed, and set again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ad import NotNeeded, NotSaveable
from effax.ir.errors import BadArgument

X, W = jnp.ones((3, 4)), 2 * jnp.ones((4, 4))


def scaled(x: Any, w: Any) -> Any:
    return 2.0 * ((1.0 * x) @ w)


def test_arguments_are_removed_and_set_again() -> None:
    y, pullback = jax.vjp(scaled, X, W)
    assert pullback.args_res[0] == NotNeeded() and pullback.args_res[1] is not None
    assert len(pullback.opaque_residuals) == 1
    pullback.args_res[1] = None
    with pytest.raises(BadArgument, match=r"missing argument args\[1\](.|\n)*f32\[4,4\]"):
        pullback(y)
    pullback.args_res[1] = W
    np.testing.assert_allclose(pullback(jnp.ones((3, 4)))[0], 2 * jnp.ones((3, 4)) @ W.T)
    pullback.args_res = [None, jnp.ones((2, 2))]
    with pytest.raises(BadArgument, match="another value"):
        pullback(y)
    pullback.args_res = [None]
    with pytest.raises(BadArgument, match="one entry for each argument"):
        pullback(y)
    assert jax.vjp(jnp.sin, 3.0)[1].args_res == [NotNeeded()]


@pytest.mark.slow
def test_arguments_that_are_not_kept_pass_through_jit() -> None:
    @jax.jit
    def forward(x: Any, w: Any) -> Any:
        return jax.vjp(scaled, x, w, saveable_args=(True, False))

    @jax.jit
    def backward(pullback: Any, w: Any, ct: Any) -> Any:
        pullback.args_res[1] = w
        return pullback(ct)

    y, pullback = forward(X, W)
    assert pullback.args_res[1] == NotSaveable()
    assert [x.shape for x in jax.tree.leaves(pullback)] == [(3, 4)]
    with pytest.raises(BadArgument, match="not-saveable"):
        jax.jit(lambda f, ct: f(ct))(pullback, y)
    for found, wanted in zip(backward(pullback, W, y), jax.vjp(scaled, X, W)[1](y), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_trees_of_arguments() -> None:
    given = {"a": X, "b": W}
    _, pullback = jax.vjp(lambda d: d["a"] @ d["b"], given, saveable_args=((True, False),))
    kept, removed = pullback.args_res[0]
    assert (kept.shape, removed) == ((3, 4), NotSaveable())
    with pytest.raises(BadArgument, match=r"args\[0\]\['b'\]"):
        pullback(X)
    pullback.args_res = [given]
    assert pullback(X)[0]["b"].shape == (4, 4)


@pytest.mark.parametrize(
    ("saveable", "says"),
    [
        ((True,), "number of children"),
        ((True, (True, True)), "leaf"),
        ((1, True), "tuple-tree of bools"),
        ([True, True], "tuple-tree of bools"),
    ],
)
def test_wrong_trees_of_booleans(saveable: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        jax.vjp(scaled, X, W, saveable_args=saveable)
