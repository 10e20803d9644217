"""`interp` and `vectorize` against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped

XP, FP = np.array([-1.0, 0.0, 0.5, 2.0], np.float32), np.array([3, 1, 4, -2], np.float32)
AT = np.array([[-3.0, -1.0, -0.25], [0.5, 1.9, 7.0]], np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"left": -9.0, "right": 9}, {"period": 2.5}, {"right": 0.5}], ids=str
)
def test_interpolation_as_in_numpy(options: dict[str, Any]) -> None:
    ours = jnp.interp(AT, XP, FP, **options)
    compiled = effax.jit(lambda x: jnp.interp(x, XP, FP, **options))(AT)
    for found in (ours, compiled):
        np.testing.assert_allclose(np.asarray(found), np.interp(AT, XP, FP, **options), atol=1e-5)


def test_interpolation_beyond_the_points() -> None:
    found = jnp.interp(np.array([-2.0, 3.0]), XP, FP, "extrapolate", "extrapolate")
    np.testing.assert_allclose(np.asarray(found), [5, -6])
    np.testing.assert_allclose(np.asarray(jnp.interp(AT, XP[:1], FP[:1], left=0.0)), 3 * (AT >= -1))


def test_slopes_of_a_polygon() -> None:
    slope = effax.grad(lambda x: jnp.interp(x, XP, FP))
    assert [float(slope(x)) for x in (-0.5, 0.25, 3.0)] == [-2, 6, 0]
    by_values = effax.grad(lambda f: jnp.interp(0.25, XP, f))(FP)
    np.testing.assert_allclose(np.asarray(by_values), [0, 0.5, 0.5, 0])
    twice = effax.grad(lambda x: jnp.interp(x, np.zeros(2, np.float32), FP[:2]))(0.0)
    assert np.isfinite(float(twice))


def test_interp_rejects_bad_arguments() -> None:
    with pytest.raises(IllTyped, match="coordinates of points"):
        jnp.interp(AT, XP, FP[:2])
    with pytest.raises(BadArgument, match="extrapolate"):
        jnp.interp(AT, XP, FP, "beyond")


def plus(x: Any, y: Any) -> Any:
    assert not np.shape(x)
    assert not np.shape(y)
    return x + 2 * y


def test_scalars_broadcast() -> None:
    f, g = jnp.vectorize(plus), np.vectorize(plus)
    for x, y in (
        (AT, XP[:3]),
        (AT[:, :1], XP),
        (2.0, 3.0),
        (AT[None], AT[:, None]),
        (AT[:1, :1], 1),
    ):
        ours, theirs = f(x, y), g(np.asarray(x), np.asarray(y))
        assert ours.shape == np.shape(theirs)
        np.testing.assert_allclose(np.asarray(ours), theirs)


def test_signatures_and_excluded_arguments() -> None:
    rng = np.random.default_rng(0)
    m, v = rng.normal(size=(4, 1, 2, 3)), rng.normal(size=(5, 3))
    matvec = jnp.vectorize(lambda m, v: m @ v, signature="(n,k),(k)->(n)")
    found = matvec(m, v)
    assert found.shape == (4, 5, 2)
    np.testing.assert_allclose(
        np.asarray(found), np.einsum("abnk,bk->abn", np.broadcast_to(m, (4, 5, 2, 3)), v), rtol=1e-5
    )
    power = jnp.vectorize(lambda x, n, scale=1: scale * x**n, excluded={1, "scale"})
    np.testing.assert_allclose(np.asarray(power(XP, 2, scale=3)), 3 * XP**2)
    both = jnp.vectorize(lambda x, y: (x + y, x * y))(XP, FP[:, None])
    assert [b.shape for b in both] == [(4, 4), (4, 4)]


def test_vectorize_rejects_bad_arguments() -> None:
    with pytest.raises(BadArgument, match="invalid signature"):
        jnp.vectorize(plus, signature="(n),(n)")
    with pytest.raises(IllTyped, match="two sizes"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(XP, AT)
    with pytest.raises(BadArgument, match="number of arguments differs"):
        jnp.vectorize(plus, signature="(n)->()")(XP, XP)
    with pytest.raises(BadArgument, match="number of results differs"):
        jnp.vectorize(plus, signature="(),()->(),()")(XP, XP)
