"""Functions with custom derivatives, alone and in all other transformations."""

from __future__ import annotations

from typing import Any

import numpy as np


def _product(jax: Any, jnp: Any) -> Any:
    """Return a function whose rule calls the function, with another derivative."""

    @jax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 2.0 * jnp.cos(x) * dx * y + jnp.sin(x) * dy

    return f


def _clipped(jax: Any, jnp: Any) -> Any:
    """Return the example of JAX's documentation, whose forward rule calls the function."""

    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def forward(x: Any, y: Any) -> Any:
        return f(x, y), (jnp.cos(x), jnp.sin(x), y)

    def backward(res: Any, g: Any) -> Any:
        cos_x, sin_x, y = res
        return 3.0 * cos_x * g * y, sin_x * g

    f.defvjp(forward, backward)
    return f


def forward_rules(jax: Any, jnp: Any) -> object:
    f = _product(jax, jnp)
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    return (
        f(x, y),
        jax.jit(f)(x, y),
        jax.jvp(f, (x, y), (y, x)),
        jax.grad(f, (0, 1))(x, y),
        jax.grad(jax.jit(f))(x, y),
        jax.linearize(f, x, y)[1](x, y),
        jax.grad(lambda x: f(x, 3.0))(x),
        jax.grad(lambda y: f(x, y))(y),
    )


def forward_rules_differentiated_again(jax: Any, jnp: Any) -> object:
    f = _product(jax, jnp)
    g = lambda x: f(x, x * x) * x
    x = jnp.float32(0.5)
    return (
        jax.grad(jax.grad(g))(x),
        jax.grad(jax.grad(jax.grad(g)))(x),
        jax.jit(jax.grad(jax.jit(jax.grad(g))))(x),
        jax.hessian(lambda v: f(v[0], v[1]))(jnp.array([0.5, 2.0])),
        jax.jvp(jax.grad(g), (x,), (x,)),
    )


def batched_forward_rules(jax: Any, jnp: Any) -> object:
    f = _product(jax, jnp)
    xs = np.linspace(0, 1, 3, dtype=np.float32)
    return (
        jax.vmap(f)(xs, xs),
        jax.vmap(f, (0, None))(xs, np.float32(2)),
        jax.vmap(jax.grad(f), (None, 0))(np.float32(2), xs),
        jax.grad(lambda x: jax.vmap(f, (0, None))(x, 2.0).sum())(xs),
        jax.vmap(jax.grad(jax.grad(lambda x: f(x, x))))(xs),
        jax.jit(jax.vmap(jax.vmap(jax.grad(f), (0, None)), (None, 0)))(xs, xs),
        jax.jacfwd(lambda x: f(x, x))(xs),
        jax.grad(jax.grad(lambda s: jax.vmap(f, (0, None))(xs, s * s).sum()))(np.float32(2)),
    )


def forward_rules_in_loops(jax: Any, jnp: Any) -> object:
    f = _product(jax, jnp)
    xs = np.linspace(0.1, 1, 4, dtype=np.float32)

    def total(c: Any, xs: Any) -> Any:
        c, ys = jax.lax.scan(lambda c, x: (f(c, x), f(x, c)), c, xs)
        return c + ys.sum()

    g = jax.grad(total, (0, 1))
    return (
        g(jnp.float32(0.5), xs),
        jax.jit(g)(jnp.float32(0.5), xs),
        jax.grad(jax.grad(total))(jnp.float32(0.5), xs),
        jax.grad(lambda x: jax.lax.cond(x > 0, lambda: f(x, x), lambda: x))(jnp.float32(0.5)),
    )


def rules_that_loop_over_the_function(jax: Any, jnp: Any) -> object:
    table = jnp.array([1.0, 2.0, 3.0])

    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x) * table[1]

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        c, _ = jax.lax.scan(lambda c, w: (c + f(x) * w, None), x * 0, table)
        return f(x), c * t

    x = jnp.float32(0.3)
    return (
        jax.grad(f)(x),
        jax.grad(jax.grad(f))(x),
        jax.vmap(jax.grad(jax.grad(f)))(jnp.array([0.3, 0.4])),
        jax.jit(jax.grad(jax.grad(jax.grad(f))))(x),
    )


def rules_through_jit(jax: Any, jnp: Any) -> object:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    twice = jax.jit(lambda x: 2.0 * f(x))

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), twice(x) * t

    x = jnp.float32(0.3)
    return jax.grad(f)(x), jax.grad(twice)(x), jax.grad(jax.grad(f))(x), jax.grad(twice)(x)


def one_rule_an_argument(jax: Any, jnp: Any) -> object:
    @jax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * x * y

    f.defjvps(lambda t, out, x, y: 5.0 * t * out, None)
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    return jax.grad(f)(x, y), jax.grad(f, (0, 1))(x, y), jax.grad(jax.grad(f))(x, y)


def non_differentiable_arguments(jax: Any, jnp: Any) -> object:
    from functools import partial

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def apply(g: Any, x: Any) -> Any:
        return g(x)

    @apply.defjvp
    def rule(g: Any, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return apply(g, x), 7.0 * t

    @partial(jax.custom_vjp, nondiff_argnums=(1,))
    def scale(x: Any, k: Any) -> Any:
        return x * k

    scale.defvjp(lambda x, k: (scale(x, k), x), lambda k, x, g: (g * k * x,))
    return (
        jax.grad(lambda x: apply(jnp.sin, x))(0.5),
        jax.grad(jax.grad(lambda x: apply(jnp.sin, x) * x))(0.5),
        jax.grad(lambda x: scale(x, 3))(0.5),
        jax.jit(jax.vmap(jax.grad(lambda x: scale(x, 3))))(np.arange(3, dtype=np.float32)),
    )


def backward_rules(jax: Any, jnp: Any) -> object:
    f = _clipped(jax, jnp)
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    xs = np.linspace(0, 1, 3, dtype=np.float32)
    return (
        f(x, y),
        jax.jit(f)(x, y),
        jax.grad(f, (0, 1))(x, y),
        jax.jit(jax.value_and_grad(f))(x, y),
        jax.vjp(f, x, y)[1](y),
        jax.vmap(f, (0, None))(xs, y),
        jax.vmap(jax.grad(f, (0, 1)), (0, None))(xs, y),
        jax.grad(lambda y: jax.vmap(f, (0, None))(xs, y).sum())(y),
        jax.jacrev(lambda x: f(x, x))(xs),
    )


def backward_rules_differentiated_again(jax: Any, jnp: Any) -> object:
    f = _clipped(jax, jnp)
    x = jnp.float32(0.5)
    return (
        jax.grad(jax.grad(lambda x: f(x, x)))(x),
        jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c, x), None), x, None, 3)[0])(x),
        jax.jit(jax.grad(jax.grad(lambda x: f(x, 2.0) ** 2)))(x),
    )


def trees_and_none(jax: Any, jnp: Any) -> object:
    @jax.custom_vjp
    def f(params: Any, x: Any, n: Any) -> Any:
        return {"y": params["w"] * x, "z": params["w"] + n}

    def forward(params: Any, x: Any, n: Any) -> Any:
        return f(params, x, n), (params, x, None)

    def backward(res: Any, g: Any) -> Any:
        _, x, _ = res
        return {"w": g["y"] * x + 10.0 * g["z"], "unused": None}, None, None

    f.defvjp(forward, backward)
    loss = lambda p, x: sum(v.sum() for v in f(p, x, 2).values())
    p = {"w": jnp.arange(3.0), "unused": jnp.ones(2)}
    return jax.grad(loss, (0, 1))(p, jnp.ones(3)), jax.vjp(f, p, jnp.ones(3), 2)[0]


def defaults_and_keywords(jax: Any, jnp: Any) -> object:
    @jax.custom_jvp
    def f(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), 5.0 * tangents[0]

    return jax.grad(f)(1.0), jax.grad(lambda x: f(x, scale=3.0))(1.0), f(2.0)


def straight_through(jax: Any, jnp: Any) -> object:
    @jax.custom_jvp
    def rounded(x: Any) -> Any:
        return jnp.round(x)

    rounded.defjvp(lambda primals, tangents: (rounded(*primals), tangents[0]))
    x = np.array([0.4, 1.6], np.float32)
    return jax.grad(lambda x: (rounded(x) * x).sum())(x), jax.jvp(rounded, (x,), (x,))
