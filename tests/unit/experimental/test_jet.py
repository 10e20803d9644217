"""Taylor mode against iterated forward mode, and its errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, tree
from effax.experimental.jet import fact, jet, zero_series
from effax.ir.errors import BadArgument, IllTyped, TransformError
from tests.unit.transforms.array_cases import normal

jsp: Any = jnp.linalg
X, P, A = normal(3), np.abs(normal(3)) + 0.5, normal(3, 3) + 3 * np.eye(3)
ORDER = 3

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "quotients and powers": (lambda x, p: x / p + p**x + jnp.arctan2(x, p), (X, P)),
    "elementwise": (lambda x: jnp.tanh(x) * jnp.exp(jnp.sin(x)) + jnp.abs(x) ** 3, (X,)),
    "matrices": (lambda a, x: jnp.linalg.solve(a, x) @ jsp.inv(a), (A, X)),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(a + a.T), (A,)),
    "scan": (lambda x: lax.scan(lambda c, a: (c * jnp.sin(a), c + a), 1.0, x)[1], (X,)),
    "while": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]) * s[1]), (0, x)
        )[1],
        (X,),
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (X,)),
    "calls": (effax.jit(effax.checkpoint(lambda x: jnp.sort(x)[1:] * jnp.cumprod(x)[:2])), (X,)),
}


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_series_are_derivatives_along_a_curve(name: str) -> None:
    f, args = CASES[name]
    series = [[normal(*x.shape, seed=k) for k in range(1, ORDER + 1)] for x in args]

    def along(t: Any) -> Any:
        powers = [t**k / math.factorial(k) for k in range(1, ORDER + 1)]
        moved = [sum(c * w for c, w in zip(cs, powers, strict=True)) for cs in series]
        return f(*[x + d for x, d in zip(args, moved, strict=True)])

    expected, derivative = [], along
    for _ in range(ORDER):
        derivative = effax.jacfwd(derivative)
        expected.append(derivative(0.0))
    y, found = jet(f, args, series)
    np.testing.assert_allclose(y, f(*map(jnp.asarray, args)), rtol=1e-12)
    for term, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(term, wanted, rtol=1e-8, atol=1e-8)
    compiled = effax.jit(lambda args, series: jet(f, args, series))(args, series)
    for a, b in zip(tree.leaves((y, found)), tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_trees_scales_and_zero_series() -> None:
    f = lambda d, k: {"y": d["x"] ** 2, "n": k}  # noqa: E731
    y, terms = jet(f, ({"x": 3.0}, 2), ([{"x": 1.0}, {"x": 0.0}], zero_series))
    assert (float(y["y"]), [float(t) for t in terms["y"]]) == (9.0, [6.0, 2.0])
    assert [int(t) for t in terms["n"]] == [0, 0]
    plain = jet(lambda x: x**2, (3.0,), ([1.0, 0.0],), factorial_scaled=False)[1]
    assert [float(t) for t in plain] == [6.0, 1.0]
    assert fact(4) == 24 and repr(zero_series) == "zero_series"


def test_bad_input() -> None:
    with pytest.raises(BadArgument, match="inconsistent lengths"):
        jet(jnp.add, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(BadArgument, match="a series for each argument"):
        jet(jnp.sin, (1.0,), ())
    with pytest.raises(IllTyped, match="does not fit"):
        jet(jnp.sin, (1.0,), ([np.ones(2)],))
    with pytest.raises(IllTyped, match="another structure"):
        jet(jnp.sin, (1.0,), ([(1.0,)],))
    with pytest.raises(TransformError, match="no jvp rule"):
        jet(lambda x: lax.linalg.schur(x)[0], (A,), ([A],))
