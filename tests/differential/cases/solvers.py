"""custom_linear_solve, custom_root, associative_scan: values, derivatives, batching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.1, 2.0]], np.float32)
RIGHT = np.array([1.0, 2.0, 3.0], np.float32)


def _richardson(jax: Any) -> Callable[[Any, Any], Any]:
    """Return a solver by the iteration x + (b - A·x)/5, for a small matrix."""

    def solve(matvec: Any, b: Any) -> Any:
        return jax.lax.fori_loop(0, 40, lambda i, x: x + (b - matvec(x)) * 0.2, b * 0)

    return solve


def linear_systems(jax: Any, jnp: Any) -> object:
    solve = _richardson(jax)

    def f(a: Any, b: Any) -> Any:
        return jax.lax.custom_linear_solve(lambda x: a @ x, b, solve, transpose_solve=solve)

    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(jnp.sin(f(a, b)))

    a, b = jnp.asarray(MATRIX), jnp.asarray(RIGHT)
    return (
        f(a, b),
        jax.jvp(f, (a, b), (a * 0.1, b * 2)),
        jax.grad(loss, (0, 1))(a, b),
        jax.jit(jax.grad(loss))(a, b),
        jax.hessian(loss, 1)(a, b),
        jax.vmap(lambda s: jax.grad(loss)(a * s, b))(jnp.array([1.0, 1.1])),
        jax.vmap(lambda s: f(a, b * s))(jnp.array([1.0, 1.1])),
    )


def symmetric_systems(jax: Any, jnp: Any) -> object:
    richardson = _richardson(jax)
    a, b = jnp.asarray(MATRIX + MATRIX.T) / 2, jnp.asarray(RIGHT)

    def solve(matvec: Any, b: Any) -> Any:
        return richardson(matvec, b), {"sum": jnp.sum(b)}

    def f(b: Any) -> Any:
        return jax.lax.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True, has_aux=True)

    return (
        f(b),
        jax.jvp(f, (b,), (b,)),
        jax.vmap(f)(jnp.stack([b, b * 2])),
        jax.grad(lambda b: jnp.sum(f(b)[0] ** 2))(b),
    )


def roots(jax: Any, jnp: Any) -> object:
    def root(w: Any, x0: Any = 1.0) -> Any:
        def f(x: Any) -> Any:
            return x * x * x - w

        def solve(f: Any, x: Any) -> Any:
            def better(x: Any) -> Any:
                return x - f(x) / (3 * x * x)

            return jax.lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-4, better, x)

        return jax.lax.custom_root(f, x0, solve, lambda g, y: y / g(1.0))

    return (
        root(8.0),
        jax.grad(root)(8.0),
        jax.jit(jax.grad(root))(8.0),
        jax.grad(jax.grad(root))(8.0),
        jax.jvp(root, (8.0,), (1.0,)),
        jax.vmap(jax.grad(root))(jnp.array([8.0, 27.0])),
        jax.grad(root, 1)(8.0, 1.5),
    )


def associative_scans(jax: Any, jnp: Any) -> object:
    scan = jax.lax.associative_scan

    def affine(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    found = []
    for n in (0, 1, 2, 3, 6, 7):
        x = jnp.arange(n * 2.0).reshape(n, 2) + 1
        found.append(scan(lambda a, b: a * b, x))
        found.append(scan(lambda a, b: a + b, x, reverse=True))
        found.append(scan(affine, (x * 0.1, x), axis=-2))
    found.append(scan(jnp.maximum, jnp.asarray(MATRIX), axis=1))
    found.append(scan(lambda a, b: a | b, jnp.array([False, True, False])))
    found.append(jax.grad(lambda x: scan(lambda a, b: a * b, x).sum())(jnp.arange(1.0, 6.0)))
    found.append(jax.vmap(lambda x: scan(lambda a, b: a * b, x))(jnp.asarray(MATRIX)))
    return found


def older_forms_of_cond(jax: Any, jnp: Any) -> object:
    cond, switch = jax.lax.cond, jax.lax.switch
    return (
        cond(True, 3.0, lambda x: x + 1, (1.0, 2.0), lambda x: x[0] + x[1]),
        cond(False, 3.0, lambda x: x + 1, (1.0, 2.0), lambda x: x[0] + x[1]),
        cond(True, lambda x: x + 1, lambda x: x - 1, operand=3.0),
        cond(True, lambda x: 1.0, lambda x: 2.0, operand=None),
        cond(pred=False, true_fun=lambda: 1, false_fun=lambda: 2),
        switch(1, [lambda a: a, lambda a: a * 2], operand=3.0),
    )


def maps_in_batches(jax: Any, jnp: Any) -> object:
    xs = jnp.arange(7.0)
    return [
        jax.lax.map(lambda p: {"s": p[0] * p[1], "n": None}, (xs, xs), batch_size=size)
        for size in (1, 3, 7, 9)
    ] + [jax.lax.map(lambda x: x * 2, xs[:0], batch_size=3)]


def weak_carries(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    return (
        lax.scan(lambda c, _: (c * 1.5, None), 1, None, 2),
        lax.while_loop(lambda c: c < 3, lambda c: c * 1.5, 1),
        lax.fori_loop(0, 3, lambda i, c: c * 1.5, 1),
        lax.scan(lambda c, _: (c * 1j, None), 1.0, None, 2),
    )
