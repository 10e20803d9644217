"""Transformations of a function at a point; each returns the visible result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Fun = Callable[[Any], Any]


def _weights(x: Any) -> Any:
    """Return a value of the type of ``x``, weakness included."""
    if x.weak_type:
        return 0.5
    return np.linspace(0.5, 1.5, int(np.prod(x.shape)), dtype=x.dtype).reshape(x.shape)


def _total(jnp: Any, f: Fun) -> Fun:
    return lambda x: jnp.sum(jnp.cos(f(x)))


def eager(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return f(jnp.asarray(x)), f(x * 1)


def jit(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    g = jax.jit(f)
    return g(x), g(x), jax.jit(g)(x)


def types(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    s = jax.eval_shape(f, x)
    return s.shape, str(s.dtype), s.weak_type


def grad(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return jax.grad(_total(jnp, f))(x)


def jit_of_value_and_grad(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return jax.jit(jax.value_and_grad(_total(jnp, f)))(x)


def grad_of_jit(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return jax.grad(_total(jnp, jax.jit(f)))(x)


def jvp(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    x = jnp.asarray(x)
    return jax.jvp(f, (x,), (_weights(x),))


def vjp(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    y, pull = jax.vjp(f, x)
    return y, pull(jnp.asarray(_weights(y)))


def linearize(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    x = jnp.asarray(x)
    y, push = jax.linearize(f, x)
    return y, push(jnp.asarray(_weights(x))), push(jnp.ones_like(x))


def vmap(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    xs = jnp.stack([jnp.asarray(x), jnp.asarray(x) * 0.5 + 0.2])
    return jax.vmap(f)(xs), jax.jit(jax.vmap(f, out_axes=-1))(xs)


def vmap_of_grad(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    xs = jnp.stack([jnp.asarray(x), jnp.asarray(x) * 0.5 + 0.2], axis=-1)
    return jax.vmap(jax.grad(_total(jnp, f)), in_axes=-1)(xs)


def grad_of_vmap(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    xs = jnp.stack([jnp.asarray(x), jnp.asarray(x) * 0.5 + 0.2])
    return jax.grad(_total(jnp, jax.jit(jax.vmap(f))))(xs)


def jvp_of_vjp(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    x = jnp.asarray(x)

    def pulled(x: Any) -> Any:
        y, pull = jax.vjp(f, x)
        return pull(jnp.ones_like(y))[0]

    return jax.jvp(pulled, (x,), (jnp.asarray(_weights(x)),))


def grad_of_grad(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    g = jax.grad(_total(jnp, f))
    return jax.grad(lambda x: jnp.sum(g(x) * jnp.asarray(_weights(jnp.asarray(x)))))(x)


def jacobians(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return jax.jacfwd(f)(x), jax.jacrev(f)(x)


def hessian(jax: Any, jnp: Any, f: Fun, x: Any) -> object:
    return jax.hessian(_total(jnp, f))(x)


TRANSFORMATIONS: list[Callable[[Any, Any, Fun, Any], object]] = [
    eager,
    jit,
    types,
    grad,
    jit_of_value_and_grad,
    grad_of_jit,
    jvp,
    vjp,
    linearize,
    vmap,
    vmap_of_grad,
    grad_of_vmap,
    jvp_of_vjp,
    grad_of_grad,
    jacobians,
    hessian,
]
