"""Transformations inside of each other, and closures over the tracers of every level."""

from __future__ import annotations

from typing import Any

import numpy as np


def jit_of_everything(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        c, ys = jax.lax.scan(lambda c, y: (jnp.sin(c) * y, c), x.sum(), x)
        return jax.lax.cond(c > 0, lambda: ys.sum(), lambda: c * 2)

    x = np.linspace(0.1, 1, 4, dtype=np.float32)
    return [
        jax.jit(jax.grad(jax.jit(f)))(x),
        jax.jit(jax.vmap(jax.jit(jax.grad(f))))(np.stack([x, -x])),
        jax.jit(jax.jacfwd(jax.jit(jax.jacrev(f))))(x),
        jax.jit(lambda x: jax.jvp(jax.grad(f), (x,), (x,)))(x),
        jax.jit(lambda x: jax.linearize(jax.grad(f), x)[1](x))(x),
        jax.jit(lambda x: jax.vjp(jax.grad(f), x)[1](x))(x),
        jax.jit(lambda x: jax.lax.scan(lambda c, _: (c - 0.1 * jax.grad(f)(c), f(c)), x, None, 3))(
            x
        ),
    ]


def gradient_steps_in_a_loop(jax: Any, jnp: Any) -> object:
    loss = lambda w, x: ((jnp.tanh(w @ x) - x) ** 2).mean()

    @jax.jit
    def train(w: Any, xs: Any) -> Any:
        def step(w: Any, x: Any) -> tuple[Any, Any]:
            value, g = jax.value_and_grad(loss)(w, x)
            return w - 0.1 * g, value

        return jax.lax.scan(step, w, xs)

    w = np.eye(3, dtype=np.float32)
    xs = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return train(w, xs), jax.grad(lambda w: train(w, xs)[1][-1])(w)


def closures_over_every_level(jax: Any, jnp: Any) -> object:
    def f(a: Any) -> Any:
        def g(b: Any) -> Any:
            def h(c: Any) -> Any:
                def step(s: Any, t: Any) -> tuple[Any, Any]:
                    return s * a + b * t + c, a

                return jax.lax.scan(step, a * b, jnp.array([1.0, 2.0]))[0]

            return (
                jax.grad(h)(b)
                + jax.jit(lambda d: d * a * b)(b)
                + jax.vmap(h)(jnp.array([1.0, 2.0]) * b).sum()
            )

        return jax.grad(g)(a) + a

    return f(1.5), jax.grad(f)(1.5), jax.jit(jax.grad(f))(1.5), jax.vmap(f)(jnp.array([1.0, 2.0]))


def perturbations_are_kept_apart(jax: Any, jnp: Any) -> object:
    f = lambda x: x * jax.grad(lambda y: x + y)(1.0)
    g = lambda x: x * jax.jvp(lambda y: x * y, (2.0,), (1.0,))[1]
    return jax.grad(f)(1.0), jax.grad(g)(3.0), jax.jvp(g, (3.0,), (1.0,))


def vmap_of_grad_of_scan_of_cond(jax: Any, jnp: Any) -> object:
    def f(x: Any, ys: Any) -> Any:
        def step(c: Any, y: Any) -> tuple[Any, Any]:
            c = jax.lax.cond(y > c, lambda c: c * y, lambda c: c + jnp.cos(y), c)
            return c, c

        return jax.lax.scan(step, x, ys)[1].sum()

    xs = np.linspace(-1, 1, 3, dtype=np.float32)
    ys = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    return (
        jax.vmap(jax.grad(f, (0, 1)))(xs, ys),
        jax.vmap(jax.vmap(jax.grad(f), (None, 0)), (0, None))(xs, ys),
        jax.jit(jax.vmap(jax.hessian(f)))(xs, ys),
    )


def jvp_of_vjp_and_back(jax: Any, jnp: Any) -> object:
    f = lambda x: jnp.sin(x) * jnp.cumsum(x)
    x = np.linspace(0, 1, 3, dtype=np.float32)

    def transposed(ct: Any) -> Any:
        return jax.vjp(f, x)[1](ct)[0]

    return (
        jax.jvp(lambda x: jax.vjp(f, x)[1](x)[0], (x,), (x,)),
        jax.vjp(lambda x: jax.jvp(f, (x,), (x,))[1], x)[1](x),
        jax.vjp(transposed, x)[1](x),
        jax.linearize(lambda x: jax.vjp(f, x)[1](x)[0], x)[1](x),
        jax.vjp(lambda t: jax.linearize(f, x)[1](t), x)[1](x),
    )


def functions_that_cross_jit(jax: Any, jnp: Any) -> object:
    @jax.jit
    def forward(x: Any) -> Any:
        return jax.vjp(lambda x: jnp.sin(x) * x, x)

    y, pull = forward(jnp.arange(3.0))
    return y, jax.jit(lambda pull, ct: pull(ct))(pull, jnp.ones(3)), pull(jnp.ones(3))


def third_derivatives(jax: Any, jnp: Any) -> object:
    f = lambda x: jnp.exp(x) * jnp.sin(x) + x**4
    g = jax.grad(jax.grad(jax.grad(f)))
    return g(0.5), jax.vmap(g)(jnp.arange(3.0)), jax.jit(g)(0.5), jax.grad(g)(0.5)


def reverse_over_forward_of_references(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        ref = jax.new_ref(jnp.zeros(3))

        def step(_: Any, i: Any) -> tuple[Any, Any]:
            ref[i] = jnp.sin(x[i]) * ref[0]
            ref[0] += x[i]
            return None, ref[i]

        ys = jax.lax.scan(step, None, jnp.arange(3))[1]
        return (ys * ref[...]).sum()

    x = np.linspace(0.3, 1, 3, dtype=np.float32)
    return (
        jax.grad(f)(x),
        jax.jit(jax.grad(f))(x),
        jax.vmap(jax.grad(f))(np.stack([x, x * 2])),
        jax.jvp(f, (x,), (x,)),
        jax.jvp(jax.grad(f), (x,), (x,)),
    )
