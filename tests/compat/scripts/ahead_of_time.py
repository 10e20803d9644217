"""Stages of jit: tracing, lowering, compilation; static arguments; shapes without computation; caches."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


@partial(jax.jit, static_argnames="n")
def power(x, n):
    return x**n


traced = power.trace(jnp.arange(3.0), n=3)
lowered = traced.lower()
print("stablehlo" in lowered.as_text() or "func.func" in lowered.as_text())
compiled = lowered.compile()
print(compiled(jnp.arange(3.0)), lowered.out_info.shape)
print(jax.eval_shape(power, jax.ShapeDtypeStruct((2, 2), jnp.float32), 2))
print(
    jax.jit(lambda a, b: a @ b)
    .lower(np.ones((2, 3)), np.ones(3))
    .compile()(np.ones((2, 3)), np.ones(3))
)
calls = []


@jax.jit
def counted(x):
    calls.append(1)
    return x + 1


for value in (1.0, 2.0, jnp.ones(3)):
    counted(value)
print("traces", len(calls), counted.__name__)
print(jax.jit(lambda x: {"a": x, "b": (x, None)})(1.0))
print(jax.jit(lambda *args, **kw: sum(args) + kw["z"])(1, 2, z=3))
donated = jax.jit(lambda x: x + 1, donate_argnums=0)
print(donated(jnp.ones(2)))
print(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(())))
print(
    jax.jit(jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(3.0))))(jnp.array([3.0, 1.0, 2.0]))
)
try:
    compiled(jnp.arange(4.0))
except TypeError:
    print("TypeError")
print(jax.block_until_ready(jnp.ones(1)), jnp.ones(1).block_until_ready())
with jax.named_scope("block"):
    print(jax.named_call(jnp.cos, name="cosine")(0.0))
jax.clear_caches()
