"""Mutable arrays: reads, writes, accumulation, in loops, under jit, grad and vmap."""

import jax
import jax.numpy as jnp

r = jax.new_ref(jnp.zeros(3))
r[0] = 1.0
r[...] += jnp.arange(3.0)
print(r[...], r[1])


@jax.jit
def accumulate(total, x):
    total[...] += jnp.sum(x)
    return x * 2


total = jax.new_ref(0.0)
for i in range(3):
    accumulate(total, jnp.full(2, i))
print(total[...])


def cumulative(xs):
    def body(i, _):
        out[i] = state[...] * xs[i]
        state[...] = out[i]

    state, out = jax.new_ref(1.0), jax.new_ref(jnp.zeros(xs.shape))
    jax.lax.fori_loop(0, xs.shape[0], body, None)
    return jax.freeze(out)


xs = jnp.array([1.0, 2.0, 3.0, 4.0])
print(cumulative(xs), jax.jit(cumulative)(xs))
print(jax.grad(lambda xs: cumulative(xs)[-1])(xs))
print(jax.vmap(cumulative)(jnp.stack([xs, xs + 1])))


def stashed(x, ref):
    ref[...] = jax.lax.stop_gradient(jnp.sin(x))
    return jnp.sum(jnp.sin(x) ** 2)


ref = jax.new_ref(jnp.zeros(2))
print(jax.grad(stashed)(jnp.ones(2), ref), ref[...])
rows = jax.new_ref(jnp.zeros((3, 2)))
rows[1] = jnp.ones(2)
rows[2, 0] = 5.0
print(rows[...], rows.shape, rows.dtype)
print(jax.ref.swap(rows, (0, slice(None)), jnp.full(2, 7.0)), rows[0])
print(jax.make_jaxpr(lambda r: r[...])(r).effects != set())
