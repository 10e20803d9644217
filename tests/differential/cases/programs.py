"""Programs as printed: the text is JAX's, up to the weakness that JAX does not show."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.differential.side_by_side import program


def arithmetic(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda x, y: x * y + x / y - 2.0 * x)(jnp.ones(3), jnp.ones(3)))


def weak_scalars(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda x, n: (x * 2, n + 1, -n))(1.0, 3))


def mathematics(jax: Any, jnp: Any) -> object:
    f = lambda x: jnp.sin(x) + jnp.cos(x) + jnp.tanh(x) + jnp.exp(x) + jnp.log(x)
    return program(jax.make_jaxpr(f)(jnp.ones(2)))


def trees(jax: Any, jnp: Any) -> object:
    f = lambda p, q: {"b": p["w"] + q[0], "a": (q[1], None)}
    return program(jax.make_jaxpr(f)({"w": jnp.ones(2)}, [jnp.float32(1), 2]))


def constants(jax: Any, jnp: Any) -> object:
    table = jnp.arange(3.0)
    return program(jax.make_jaxpr(lambda x: x + table)(jnp.ones(3)))


def unused_and_repeated(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda x, y: (x, x, 1.0))(jnp.ones(3), 2))


def nothing(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda: ())())


def reductions(jax: Any, jnp: Any) -> object:
    f = lambda x: (jnp.sum(x, 0), jnp.max(x), jnp.prod(x, 1))
    return program(jax.make_jaxpr(f)(jnp.ones((2, 3))))


def shapes(jax: Any, jnp: Any) -> object:
    f = lambda x: (x.T, x.reshape(6), x.reshape(3, 2), jax.lax.slice(x, (0, 1), (2, 3)))
    return program(jax.make_jaxpr(f)(jnp.ones((2, 3))))


def lax_of_shapes(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    f = lambda x: (
        lax.broadcast_in_dim(x, (2, 3), (1,)),
        lax.rev(x, (0,)),
        lax.pad(x, 0.0, [(1, 2, 0)]),
        lax.concatenate([x, x], 0),
        lax.transpose(x.reshape(1, 3), (1, 0)),
        lax.iota(np.int32, 4),
    )
    return program(jax.make_jaxpr(f)(jnp.ones(3)))


def dots(jax: Any, jnp: Any) -> object:
    dims = (((1,), (0,)), ((), ()))
    f = lambda x, y: jax.lax.dot_general(x, y, dims)
    return program(jax.make_jaxpr(f)(jnp.ones((2, 3)), jnp.ones((3, 4))))


def conversions(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda n: n.astype("float32") + 1)(jnp.arange(3)))


def comparisons(jax: Any, jnp: Any) -> object:
    return program(
        jax.make_jaxpr(lambda x, y: (x < y, x == y, ~(x >= y)))(jnp.ones(3), jnp.zeros(3))
    )


def calls(jax: Any, jnp: Any) -> object:
    @jax.jit
    def f(x: Any) -> Any:
        return x + 1.0

    return program(jax.make_jaxpr(lambda x: f(f(x)))(jnp.ones(3)))


def scans(jax: Any, jnp: Any) -> object:
    f = lambda c, xs: jax.lax.scan(lambda c, x: (c + x, c * x), c, xs)
    return program(jax.make_jaxpr(f)(jnp.float32(0), jnp.ones(3)))


def switches(jax: Any, jnp: Any) -> object:
    f = lambda i, x: jax.lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x * x], x)
    return program(jax.make_jaxpr(f)(jnp.int32(1), jnp.ones(3)))


def while_loops(jax: Any, jnp: Any) -> object:
    f = lambda x: jax.lax.while_loop(lambda c: c < 5.0, lambda c: c * 2.0, x)
    return program(jax.make_jaxpr(f)(jnp.float32(1)))


def fori_loops(jax: Any, jnp: Any) -> object:
    f = lambda n, x: jax.lax.fori_loop(0, n, lambda i, c: c * 2.0, x)
    return program(jax.make_jaxpr(f)(jnp.int32(3), jnp.float32(1)))


def references(jax: Any, jnp: Any) -> object:
    def f(ref: Any, i: Any) -> Any:
        ref[2] = i
        ref[0] *= 3.0
        ref[...] = ref[...] * 2.0
        return ref[1:3]

    return program(jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(4)), jnp.float32(2)))


def internal_references(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] *= 3.0
        return jax.freeze(ref)

    return program(jax.make_jaxpr(f)(jnp.zeros(4)))


def forward_derivatives(jax: Any, jnp: Any) -> object:
    f = lambda x, t: jax.jvp(lambda x: jnp.sin(x) * x, (x,), (t,))
    return program(jax.make_jaxpr(f)(jnp.ones(2), jnp.ones(2)))


def gradients(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(jnp.sin(x))))(jnp.ones(2)))


def batched(jax: Any, jnp: Any) -> object:
    return program(
        jax.make_jaxpr(jax.vmap(lambda x, y: x * y, (0, None)))(jnp.ones(2), jnp.float32(1))
    )


def stopped(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda x: jax.lax.stop_gradient(x) + 1)(1.0))


def static_arguments(jax: Any, jnp: Any) -> object:
    return program(jax.make_jaxpr(lambda x, n: x * n, static_argnums=1)(1.0, 3))


def abstract_arguments(jax: Any, jnp: Any) -> object:
    s = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    jaxpr, shape = jax.make_jaxpr(lambda x: {"y": x @ x.T}, return_shape=True)(s)
    return program(jaxpr), shape["y"].shape, str(shape["y"].dtype)
