"""Second derivatives at 0 of magnitudes, which have none, and of their squares, which have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

Function = Callable[[Any], Any]


def norm(x: Any) -> Any:
    return jnp.linalg.norm(x)


def times_itself(x: Any) -> Any:
    return x * x


def size_of_complex(x: Any) -> Any:
    return jnp.abs(lax.complex(x[0], x[1]))


MAGNITUDES: dict[str, Function] = {
    "norm": norm,
    "norm of order 3": lambda x: jnp.linalg.norm(x, 3),
    "norm of a matrix": lambda x: jnp.linalg.norm(jnp.outer(x, jnp.ones(2))),
    "vector_norm": jnp.linalg.vector_norm,
    "std": jnp.std,
    "nanstd": jnp.nanstd,
    "hypot": lambda x: jnp.hypot(x[0], x[1]),
    "abs of a complex number": size_of_complex,
    "norm of complex numbers": lambda x: jnp.linalg.norm(lax.complex(x, x)),
    "a magnitude and its square": lambda x: norm(x) + norm(x) ** 2,
}

SQUARES: dict[str, tuple[Function, float | None]] = {
    "** 2": (lambda x: norm(x) ** 2, 2),
    "** 2.0": (lambda x: norm(x) ** 2.0, 2),
    "square": (lambda x: jnp.square(norm(x)), 2),
    "power": (lambda x: jnp.power(norm(x), 2), 2),
    "a product with itself": (lambda x: times_itself(norm(x)), 2),
    "a product of two calls": (lambda x: norm(x) * norm(x), 2),
    "of a square root": (lambda x: jnp.sqrt(jnp.sum(x * x)) ** 2, 2),
    "lax.integer_pow": (lambda x: lax.integer_pow(norm(x), 2), 2),
    "** 4": (lambda x: norm(x) ** 4, 0),
    "of a multiple": (lambda x: (3 * norm(x)) ** 2, 18),
    "of a quotient": (lambda x: (-norm(x) / 2) ** 2, 0.5),
    "of norms of rows": (lambda x: jnp.sum(jnp.linalg.norm(x[:, None], axis=1) ** 2), 2),
    "of moved norms": (
        lambda x: jnp.sum(jnp.linalg.norm(x[:, None], axis=1)[None, ::-1][:, 0] ** 2),
        None,
    ),
    "of joined norms": (lambda x: norm(jnp.stack([norm(x), norm(x)])) ** 2, 4),
    "of a selected norm": (lambda x: jnp.where(x[0] > 1, 7.0, norm(x)) ** 2, 2),
    "exp": (lambda x: jnp.exp(norm(x) ** 2 / 2), 1),
    "of hypot": (lambda x: jnp.hypot(x[0], x[1]) ** 2, 2),
    "of the abs of a complex number": (lambda x: size_of_complex(x) ** 2, 2),
    "of the norm of complex numbers": (
        lambda x: jnp.linalg.norm(lax.complex(x, 2 * x)) ** 2,
        10,
    ),
    "in a compiled function": (effax.jit(lambda x: norm(x) ** 2), 2),
    "in a checkpoint": (effax.checkpoint(lambda x: norm(x) ** 2), 2),
    "in a loop": (lambda x: lax.scan(lambda c, _: (c + norm(x) ** 2, None), 0.0, None, 3)[0], 6),
    "in a branch": (lambda x: lax.cond(x[0] < 1, lambda: norm(x) ** 2, lambda: 0.0), 2),
}

HESSIANS: dict[str, Callable[[Function], Any]] = {
    "forward over reverse": effax.hessian,
    "compiled": lambda f: effax.jit(effax.hessian(f)),
    "forward over forward": lambda f: effax.jacfwd(effax.jacfwd(f)),
    "reverse over reverse": lambda f: effax.jacrev(effax.jacrev(f)),
    "reverse over forward": lambda f: effax.jacrev(effax.jacfwd(f)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAGNITUDES)
def test_the_second_derivative_of_a_magnitude_at_0_is_nan(name: str) -> None:
    f, zero = MAGNITUDES[name], np.zeros(2, np.float32)
    compiled: Any = effax.jit(effax.grad(f))
    gradients: list[Any] = [effax.grad(f), compiled, effax.jacfwd(f)]
    for gradient in gradients:
        np.testing.assert_array_equal(gradient(zero), zero)
    for hessian in HESSIANS.values():
        assert np.isnan(np.asarray(hessian(f)(zero))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", SQUARES)
def test_the_second_derivative_of_a_square_at_0(name: str) -> None:
    f, bend = SQUARES[name]
    zero = np.zeros(2, np.float32)
    expected = np.diag([0, 2]) if bend is None else bend * np.eye(2)
    for hessian in HESSIANS.values():
        np.testing.assert_allclose(hessian(f)(zero), expected, atol=1e-6)
    batch = np.array([[0.0, 0.0], [3.0, -4.0]], np.float32)
    bends: Any = effax.vmap(effax.hessian(f))
    found = np.asarray(bends(batch))
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    np.testing.assert_allclose(found[1], effax.hessian(f)(batch[1]), rtol=1e-4, atol=1e-4)


def test_deviations() -> None:
    squares: list[Function] = [lambda x: jnp.std(x) ** 2, lambda x: jnp.nanstd(x) ** 2, jnp.var]
    expected = np.array([[0.5, -0.5], [-0.5, 0.5]])
    for f in squares:
        for x in (np.ones(2, np.float32), np.array([1.0, 3.0], np.float32)):
            hessian: Any = effax.hessian(f)
            np.testing.assert_allclose(hessian(x), expected, atol=1e-6)


def test_the_value_of_a_square_is_unchanged() -> None:
    x = np.array([0.1, -0.7, 1.9], np.float32)
    for scale in (0.0, 1.0, 1e-25, 1e25, np.inf):
        y = x * np.float32(scale) if scale != np.inf else np.full(3, np.inf, np.float32)
        value, _ = effax.value_and_grad(lambda x: norm(x) ** 2)(y)
        np.testing.assert_array_equal(value, norm(y) ** 2)
