"""References: indexing, order of effects, and how transformations treat them."""

from __future__ import annotations

from typing import Any

import numpy as np


def indexing(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    ref[1] = ref[0]
    ref[2, 3] = ref[1, 2]
    ref[0, :3] = ref[:, 1]
    ref[jnp.array([1, 2, 1]), jnp.array([0, 0, 1])] = ref[
        jnp.array([0, 0, 1]), jnp.array([1, 2, 3])
    ]
    ref[:, 1:3] *= 2.0
    ref[..., 0] += 1.0
    return ref, ref[...], ref[-1], ref[0:2, 3], ref[1, ...]


def dtypes(jax: Any, jnp: Any) -> object:
    values = (jnp.float32(0), jnp.int32(1), True, jnp.complex64(1j), jnp.int8(3))
    made = [jax.new_ref(x) for x in (*values, np.array([1, 2], np.float16))]
    return made, [r[...] for r in made], [(r.shape, str(r.dtype), r.ndim, r.size) for r in made]


def written_numbers(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.zeros(3))
    ref[0] = 1.0
    ref[1] = np.float32(2.5)
    ref[2] += 7
    return ref


def methods(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.zeros(3))
    old = jax.ref.swap(ref, 1, jnp.float32(4.0))
    jax.ref.addupdate(ref, slice(0, 2), jnp.ones(2))
    return old, jax.ref.get(ref, ...), jax.ref.get(ref, 1), jax.freeze(ref)


def closed_over_by_jit(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.zeros(3))

    @jax.jit
    def bump(i: Any) -> Any:
        ref[i] += 1.0
        return ref[...]

    outs = [bump(1), bump(2)]
    ref[0] = 5.0
    return outs, bump(1), ref


def arguments_of_jit(jax: Any, jnp: Any) -> object:
    a, b = jax.new_ref(jnp.arange(3.0)), jax.new_ref(0)

    @jax.jit
    def f(refs: Any, x: Any) -> Any:
        refs["a"][...] = refs["a"][...] * x
        refs["b"][...] += 1
        return refs["a"][0] + refs["b"][...]

    return f({"a": a, "b": b}, 2.0), f({"a": a, "b": b}, 3.0), a, b


def order(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.float32(1.0))

    @jax.jit
    def f(x: Any) -> Any:
        before = ref[...]
        ref[...] = x
        mid = ref[...]
        ref[...] = mid + before
        return before, mid, ref[...]

    return f(10.0), ref, f(20.0), ref


def internal(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        ref = jax.new_ref(jnp.zeros_like(x))
        ref[0] = x.sum()
        ref[1:] = x[1:] * 2
        ref[...] += ref[...]
        return ref[...] * x

    x = np.linspace(0.5, 2, 4, dtype=np.float32)
    return (
        f(x),
        jax.jit(f)(x),
        jax.grad(lambda x: f(x).sum())(x),
        jax.jvp(f, (x,), (np.ones_like(x),)),
        jax.vmap(f)(np.stack([x, x * 2])),
        jax.jit(jax.vmap(jax.grad(lambda x: f(x).sum())))(np.stack([x, x * 2])),
    )


def in_scans(jax: Any, jnp: Any) -> object:
    total = jax.new_ref(0)

    def step(_: Any, x: Any) -> tuple[Any, Any]:
        total[...] += x
        return None, x * total[...]

    eager = jax.lax.scan(step, None, np.arange(5))[1]
    jitted = jax.jit(lambda xs: jax.lax.scan(step, None, xs)[1])(np.arange(5))
    return eager, jitted, total


def scanned_over(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.arange(6.0).reshape(3, 2))

    def step(c: Any, row: Any) -> tuple[Any, Any]:
        row[0] += c
        return row[0], row[1]

    return jax.lax.scan(step, jnp.float32(1), ref), ref


def in_conditions(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.zeros(2))

    def write() -> Any:
        ref[0] += 1.0
        return ref[0]

    def other() -> Any:
        ref[1] = 7.0
        return jnp.float32(-1)

    f = jax.jit(lambda p: jax.lax.cond(p, write, other))
    return f(True), f(False), f(True), jax.lax.cond(True, write, other), ref


def in_loops(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(jnp.zeros(5))

    def body(i: Any, c: Any) -> Any:
        ref[i] = c * 2.0
        return c + 1.0

    eager = jax.lax.fori_loop(0, 5, body, 0.0)
    jitted = jax.jit(lambda n: jax.lax.fori_loop(0, n, body, 10.0))(3)
    return eager, jitted, ref


def gradient_beside_a_reference(jax: Any, jnp: Any) -> object:
    ref = jax.new_ref(0.0)

    def f(x: Any, log: Any) -> Any:
        y = jnp.sin(x) * x
        log[...] += jax.lax.stop_gradient(y)
        return y

    return jax.grad(f)(1.5, ref), ref, jax.jit(jax.value_and_grad(f))(0.5, ref), ref


def accumulated_gradients(jax: Any, jnp: Any) -> object:
    total = jax.new_ref(jnp.zeros(4))
    out = []
    for i in (1, 3, 1):
        y, pull = jax.vjp(lambda x, i: x[i] ** 2, jnp.arange(4.0), i)
        out.append((y, pull.with_refs(total, jax.ad.GradValue())(jnp.float32(1.0))))
    return out, total


def gradient_of_reference_arguments(jax: Any, jnp: Any) -> object:
    ref, grad_ref = jax.new_ref(2.0), jax.new_ref(100.0)
    y, pull = jax.vjp(lambda r: r[...] ** 2, ref)
    got = pull.with_refs(grad_ref)(1.0)
    return y, got, grad_ref, ref


def entries_of_with_refs(jax: Any, jnp: Any) -> object:
    params = {"w": jnp.ones((2, 2)), "b": jnp.ones(2)}
    x = jnp.arange(2.0)
    _, pull = jax.vjp(lambda p, x: jnp.tanh(p["w"] @ x + p["b"]), params, x)
    ct = jnp.ones(2)
    acc = jax.new_ref(jnp.zeros(2))
    g, dw = jax.ad.GradValue(), jax.ad.DontWant()
    return (
        pull(ct),
        pull.with_refs({"w": g, "b": g}, dw)(ct),
        pull.with_refs({"w": g, "b": acc}, dw)(ct),
        pull.with_refs({"w": dw, "b": acc}, g)(ct),
        acc,
    )


def microbatches(jax: Any, jnp: Any) -> object:
    def loss(ws: Any, xs: Any) -> Any:
        act, _ = jax.lax.scan(lambda x, w: (jnp.dot(x, w), None), xs, ws)
        return jnp.mean(act)

    def batch(ws: Any, xs: Any) -> Any:
        acc = jax.new_ref(jnp.zeros_like(ws))

        def step(_: Any, xs: Any) -> tuple[Any, Any]:
            value, pull = jax.vjp(lambda ws: loss(ws, xs), ws)
            pull.with_refs(acc)(jnp.ones_like(value))
            return (), value

        _, losses = jax.lax.scan(step, (), xs)
        return jax.freeze(acc), losses

    ws = np.linspace(0.5, 1.5, 48, dtype=np.float32).reshape(3, 4, 4)
    xs = np.linspace(-1, 1, 56, dtype=np.float32).reshape(2, 7, 4)
    return batch(ws, xs), jax.jit(batch)(ws, xs)


def stashed_gradients(jax: Any, jnp: Any) -> object:
    @jax.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def backward(ref: Any, g: Any) -> Any:
        ref[...] = g
        return None, g

    stash.defvjp(lambda ref, x: (x, ref), backward)
    ref = jax.new_ref(0.0)
    got = jax.grad(lambda x, r: jnp.sin(stash(r, x)))(1.0, ref)
    return got, ref


def frozen_in_jit(jax: Any, jnp: Any) -> object:
    @jax.jit
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[0] = 3.0
        return jax.freeze(ref)

    return f(jnp.ones(3)), f(jnp.zeros(3))


def foreach(jax: Any, jnp: Any) -> object:
    def over(*args: Any) -> Any:
        return lambda body: jax.lax.scan(lambda _, xs: (None, body(*xs)), None, args)[1]

    ref = jax.new_ref(0)

    @over(np.arange(10))
    def ys(x: Any) -> Any:
        ref[...] += x
        return x * 2

    return ref, ys
