"""Images in another size: known values, and the same eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import image
from effax.ir.errors import BadArgument, IllTyped

METHODS = ["nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
X = np.random.default_rng(0).normal(size=(5, 7, 2)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_resize_keeps_constants_and_its_own_size(method: str) -> None:
    resize = effax.jit(image.resize, static_argnums=(1, 2, 3))
    for antialias in (True, False):
        both = jnp.stack([jnp.asarray(X), jnp.ones_like(X)])
        made = resize(both, (2, 9, 4, 2), method, antialias)
        np.testing.assert_allclose(np.asarray(made[1]), 1, rtol=1e-6)
        eager = image.resize(both, (2, 9, 4, 2), method, antialias)
        np.testing.assert_allclose(np.asarray(eager), np.asarray(made), atol=1e-5)
        np.testing.assert_allclose(np.asarray(image.resize(X, X.shape, method, antialias)), X)


@pytest.mark.slow
def test_resize_has_the_values_of_each_formula() -> None:
    x = jnp.array([0.0, 4.0, 8.0, 0.0])
    np.testing.assert_allclose(np.asarray(image.resize(x, (2,), "area")), [2, 4])
    np.testing.assert_allclose(np.asarray(image.resize(x, (2,), "nearest")), [4, 0])
    # Without antialiasing, a new pixel is between two old ones.
    np.testing.assert_allclose(np.asarray(image.resize(x, (2,), "linear", False)), [2, 4])
    keys = np.array([-1, 9, 9, -1]) / 16
    cubic = image.resize(jnp.array([1.0, 2.0, 0.0, 5.0]), (2,), "cubic", False)
    inner = keys[1:] @ [1.0, 2.0, 0.0] / keys[1:].sum()
    np.testing.assert_allclose(float(cubic[0]), inner, rtol=1e-6)


@pytest.mark.slow
def test_scale_and_translate_moves_pixels_and_has_derivatives() -> None:
    x = jnp.array([1.0, 2.0, 3.0])

    def moved(t: effax.Array) -> effax.Array:
        return image.scale_and_translate(x, (3,), (0,), jnp.ones(1), t, "linear")

    for run in (lambda f: f, effax.jit):
        np.testing.assert_allclose(np.asarray(run(moved)(jnp.array([1.0]))), [0, 1, 2])
        slope = run(effax.jacfwd(moved))(jnp.array([-0.25]))
        np.testing.assert_allclose(np.asarray(slope)[:2, 0], [-1, -1], rtol=1e-6)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(BadArgument, match="unknown method"):
        image.resize(X, X.shape, "best")
    with pytest.raises(IllTyped, match="cannot get this shape"):
        image.resize(X, (5, 7), "linear")
    with pytest.raises(BadArgument, match="interpolates"):
        image.scale_and_translate(X, X.shape, (0,), np.ones(1), np.ones(1), "nearest")
    with pytest.raises(IllTyped, match="one scale"):
        image.scale_and_translate(X, X.shape, (0,), np.ones(2), np.ones(1), "linear")
    with pytest.raises(TypeError):
        image.resize(X, tuple(np.array([5.5, 7, 2])), "linear")
