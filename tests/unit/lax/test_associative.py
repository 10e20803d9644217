"""associative_scan: order of combination, number of steps, errors."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped, RefError


@pytest.mark.parametrize("n", range(10))
@pytest.mark.parametrize("reverse", [False, True])
def test_prefixes_of_a_function_that_does_not_commute(n: int, reverse: bool) -> None:
    rng = np.random.default_rng(n)
    xs = rng.normal(size=(n, 2, 2)).astype(np.float32)
    found = lax.associative_scan(
        (lambda a, b: b @ a) if reverse else (lambda a, b: a @ b), xs, reverse=reverse
    )
    if reverse:
        wanted = list(accumulate(xs[::-1], lambda a, b: b @ a))[::-1]
    else:
        wanted = list(accumulate(xs, lambda a, b: a @ b))
    assert found.shape == xs.shape
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_the_number_of_sequential_steps_is_logarithmic() -> None:
    calls: list[int] = []

    def add(a: Any, b: Any) -> Any:
        calls.append(a.shape[0])
        return a + b

    lax.associative_scan(add, jnp.ones(1000))
    assert len(calls) <= 2 * 10
    assert sum(calls) < 2 * 1000


def test_trees_along_any_axis() -> None:
    x: Any = {"a": jnp.arange(12.0).reshape(3, 4), "b": (jnp.ones((2, 4), "int32"),)}
    found = lax.associative_scan(
        lambda p, q: {"a": p["a"] + q["a"], "b": (p["b"][0] * 2 + q["b"][0],)}, x, axis=-1
    )
    np.testing.assert_array_equal(found["a"], np.cumsum(np.arange(12.0).reshape(3, 4), 1))
    assert lax.associative_scan(lambda a, b: a, (), axis=3) == ()


def test_derivatives_and_batches() -> None:
    def f(x: Any) -> Any:
        return lax.associative_scan(lambda a, b: a * b, x)

    x = jnp.array([1.5, 2.0, -1.0, 3.0, 0.5])
    np.testing.assert_allclose(effax.jacrev(f)(x), effax.jacrev(jnp.cumprod)(x), rtol=1e-5)
    np.testing.assert_allclose(effax.jit(effax.vmap(f))(jnp.stack([x, x]))[1], np.cumprod(x))


def test_bad_arguments() -> None:
    x = jnp.arange(4.0)
    with pytest.raises(BadArgument, match="takes a function"):
        lax.associative_scan(x, x)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(IllTyped, match="sizes along the axis differ") as caught:
        lax.associative_scan(lambda a, b: a, {"p": x, "q": x[:2]})
    assert "4 for elems['p'], 2 for elems['q']" in str(caught.value)
    with pytest.raises(BadArgument, match="axis out of range of"):
        lax.associative_scan(lambda a, b: a, x, axis=1)
    with pytest.raises(IllTyped, match="changes the type of elems"):
        lax.associative_scan(lambda a, b: (a + b).astype("int32"), x)
    with pytest.raises(IllTyped, match="another structure"):
        lax.associative_scan(lambda a, b: (a, b), x)  # type: ignore[arg-type, return-value]  # that is the point
    with pytest.raises(RefError, match="elems is a reference"):
        lax.associative_scan(lambda a, b: a, effax.new_ref(x))
