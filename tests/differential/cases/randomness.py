"""Random numbers inside of transformations: bits and samples are JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np


def keys(jax: Any, jnp: Any) -> object:
    random = jax.random
    key = random.key(7)
    a, b = random.split(key)
    return [
        random.key_data(k) for k in (key, a, b, random.fold_in(key, 3), random.split(key, (2, 2)))
    ]


def samples(jax: Any, jnp: Any) -> object:
    random = jax.random
    key = random.key(0)
    return (
        random.uniform(key, (3,)),
        random.normal(key, (2, 2)),
        random.randint(key, (4,), 0, 10),
        random.bernoulli(key, 0.3, (5,)),
        random.bits(key, (3,)),
        random.permutation(key, 6),
    )


def old_keys(jax: Any, jnp: Any) -> object:
    random = jax.random
    key = random.PRNGKey(3)
    return (
        key,
        random.split(key, 3),
        random.uniform(key),
        random.normal(random.fold_in(key, 1), (2,)),
    )


def in_transformations(jax: Any, jnp: Any) -> object:
    random = jax.random
    key = random.key(1)
    noisy = lambda w, key: (w * random.normal(key, (3,))).sum()

    def walk(carry: Any, _: Any) -> tuple[Any, Any]:
        key, x = carry
        key, sub = random.split(key)
        return (key, x + random.normal(sub)), x

    return (
        jax.jit(noisy)(2.0, key),
        jax.grad(noisy)(2.0, key),
        jax.vmap(noisy, (None, 0))(2.0, random.split(key, 4)),
        jax.jit(lambda key: jax.lax.scan(walk, (key, jnp.zeros(())), None, 4)[1])(key),
        jax.vmap(lambda k: random.uniform(k, (2,)))(random.split(key, 3)),
        jax.lax.cond(True, lambda k: random.uniform(k), lambda k: jnp.float32(0), key),
        random.key_data(jax.jit(lambda k: random.split(k, 2))(key)),
    )


def dropout(jax: Any, jnp: Any) -> object:
    def loss(w: Any, x: Any, key: Any) -> Any:
        keep = jax.random.bernoulli(key, 0.5, x.shape)
        return jnp.where(keep, w * x, 0.0).sum()

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    return jax.jit(jax.value_and_grad(loss))(jnp.float32(2), x, jax.random.key(5))
