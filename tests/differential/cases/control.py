"""scan, cond, switch, while_loop, fori_loop, map: carries, trees, weak types, closures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class _State(NamedTuple):
    total: Any
    count: Any


def _vector() -> np.ndarray:
    return np.linspace(-1, 1, 5, dtype=np.float32)


def scan_of_trees(jax: Any, jnp: Any) -> object:
    def step(state: _State, x: Any) -> tuple[_State, Any]:
        new = _State(state.total + x["a"] * x["b"][0], state.count + 1)
        return new, {"partial": new.total, "none": None}

    xs = {"a": _vector(), "b": (np.ones(5, np.float32),)}
    return jax.lax.scan(step, _State(0.0, 0), xs)


def scan_without_inputs(jax: Any, jnp: Any) -> object:
    return (
        jax.lax.scan(lambda c, _: (c * 2, c), 1, None, length=5),
        jax.lax.scan(lambda c, x: (c, x), None, _vector()),
        jax.lax.scan(lambda c, x: (c + 1, None), 0, _vector()),
        jax.lax.scan(lambda c, x: (c + x, ()), 0.0, np.zeros(0, np.float32)),
        jax.lax.scan(lambda c, x: ((), x), (), np.arange(3)),
    )


def scan_options(jax: Any, jnp: Any) -> object:
    step = lambda c, x: (c * 0.5 + x, c)
    return [
        jax.jit(lambda xs, r=r, u=u: jax.lax.scan(step, jnp.float32(1), xs, None, r, u))(_vector())
        for r in (False, True)
        for u in (1, 2, True)
    ]


def scan_of_weak_carries(jax: Any, jnp: Any) -> object:
    return (
        jax.lax.scan(lambda c, x: (c + x, c), 0.0, _vector())[0],
        jax.lax.scan(lambda c, x: (c + 1, c), 0, _vector()),
        jax.lax.scan(lambda c, x: (c + x, c), 0, np.arange(3))[0],
        jax.lax.scan(lambda c, x: (c * 2.0, c), 1.0, np.arange(3)),
        jax.lax.scan(lambda c, x: (c * x, c), 1.0, np.ones(2, np.float16))[0],
    )


def scan_of_views(jax: Any, jnp: Any) -> object:
    def outer(c: Any, row: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c + x, c * x), c, row)

    return jax.lax.scan(outer, jnp.float32(0), np.arange(6, dtype=np.float32).reshape(2, 3))


def closures(jax: Any, jnp: Any) -> object:
    table = jnp.arange(4.0)

    @jax.jit
    def f(x: Any, n: Any) -> Any:
        y = x * 2

        def step(c: Any, t: Any) -> tuple[Any, Any]:
            z = c + y
            return jax.lax.cond(t > 1, lambda: z * t, lambda: z - y), z + table[0]

        c, ys = jax.lax.scan(step, x, table)
        w = jax.lax.while_loop(lambda i: i < n * y, lambda i: i + y + table[1], y)
        return c, ys, w

    return f(jnp.float32(1.5), jnp.float32(4))


def conds(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    x = _vector()
    return (
        lax.cond(True, lambda x: x, lambda x: -x, x),
        lax.cond(np.bool_(False), lambda x, y: (x, y), lambda x, y: (y, x), x, x * 2),
        lax.cond(jnp.float32(0), lambda: 1.0, lambda: 2.0),
        lax.cond(3, lambda: 1, lambda: 2),
        lax.cond(True, lambda d: {"k": d["k"] + 1, "n": None}, lambda d: d, {"k": 1.0, "n": None}),
        jax.jit(lambda p: lax.cond(p, lambda: 2.0, lambda: jnp.float32(1)))(True),
        jax.jit(lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x, x))(False, 2.5),
    )


def switches(jax: Any, jnp: Any) -> object:
    branches = [lambda x: x, lambda x: x * x, lambda x: -x]
    f = jax.jit(lambda i, x: jax.lax.switch(i, branches, x))
    return (
        [f(i, 3.0) for i in (-1, 0, 1, 2, 9)],
        jax.lax.switch(1, branches, 2),
        jax.lax.switch(np.uint8(2), branches, np.float32(2)),
        jax.lax.switch(0, branches[:1], 2.0),
    )


def while_loops(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    return (
        lax.while_loop(lambda c: c < 100, lambda c: c * 2, 1),
        lax.while_loop(lambda c: c < 100, lambda c: c * 2, 1.5),
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, jnp.ones(2))),
        lax.while_loop(
            lambda s: s["go"], lambda s: {"go": s["n"] < 4, "n": s["n"] + 1}, {"go": True, "n": 0}
        ),
        jax.jit(lambda n: lax.while_loop(lambda c: c < n, lambda c: c + n / 3, n * 0))(7.0),
        lax.while_loop(lambda c: False, lambda c: c + 1, 0),
    )


def fori_loops(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    body = lambda i, c: c * 2 + i
    return (
        lax.fori_loop(0, 5, body, 1),
        lax.fori_loop(0, 5, body, 1.0),
        lax.fori_loop(2, 2, body, 1.0),
        lax.fori_loop(5, 0, body, 1),
        lax.fori_loop(np.int32(1), np.int32(4), body, jnp.float32(1)),
        jax.jit(lambda n: lax.fori_loop(0, n, body, 1.0))(4),
        jax.jit(lambda n: lax.fori_loop(n, n + 3, lambda i, c: (c[0] + i, i), (0, 0)))(4),
        lax.fori_loop(jnp.int8(0), jnp.int8(3), lambda i, c: c + i, jnp.int8(0)),
        lax.fori_loop(0, 3, lambda i, c: c.at[i].set(i * 2.0), jnp.zeros(4)),
    )


def maps(jax: Any, jnp: Any) -> object:
    return (
        jax.lax.map(lambda x: x * 2, _vector()),
        jax.lax.map(lambda p: (p[0] + p[1]["k"], None), (_vector(), {"k": _vector()})),
    )


def derivatives_of_while(jax: Any, jnp: Any) -> object:
    f = lambda x: jax.lax.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1]) * x), (0, x)
    )[1]
    return jax.jvp(f, (0.7,), (1.0,)), jax.jacfwd(f)(0.7), jax.linearize(f, 0.7)[1](2.0)


def derivatives_with_closures(jax: Any, jnp: Any) -> object:
    def f(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> tuple[Any, Any]:
            c = jnp.tanh(w @ c + x)
            return c, jax.lax.cond(x[0] > 0, lambda: c.sum() * w[0, 0], lambda: w.sum())

        c, ys = jax.lax.scan(step, jnp.ones(2), xs)
        return ys.sum() + c.sum()

    w = np.array([[0.5, -0.2], [0.1, 0.9]], np.float32)
    xs = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    return (
        jax.value_and_grad(f, (0, 1))(w, xs),
        jax.jit(jax.hessian(lambda w: f(w, jnp.asarray(xs))))(w),
        jax.vmap(jax.grad(f), (None, 0))(w, np.stack([xs, xs + 0.3])),
        jax.jit(jax.jacrev(jax.grad(f, 1), 0))(w, xs),
    )


def derivatives_of_integers_beside(jax: Any, jnp: Any) -> object:
    def f(x: Any, n: Any) -> Any:
        def step(c: Any, i: Any) -> tuple[Any, Any]:
            return (c[0] * x + i, c[1] + i), c[1]

        (c, m), ys = jax.lax.scan(step, (x, n), jnp.arange(3))
        return c + ys.sum() + m

    return jax.grad(f)(1.5, 2), jax.jvp(lambda x: f(x, 2), (1.5,), (1.0,))


def grad_of_grad_of_scan(jax: Any, jnp: Any) -> object:
    f = lambda x: jax.lax.scan(lambda c, y: (jnp.sin(c) * y, c), x, _vector())[0]
    g = jax.grad(jax.grad(f))
    return g(0.3), jax.jit(g)(jnp.float32(0.3)), jax.vmap(g)(_vector())
