"""Gradients of each example by vmap of grad; Jacobians and Hessians by forward and reverse mode."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x, y):
    return jnp.log1p(jnp.exp(-y * jnp.dot(x, w)))


x = np.cos(np.arange(15.0)).reshape(5, 3)
y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
w = jnp.array([0.3, -0.2, 0.9])
each = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))(w, x, y)
print(each)
clipped = each / jnp.maximum(1.0, jnp.linalg.norm(each, axis=1, keepdims=True) / 0.3)
print(jnp.mean(clipped, axis=0))
print(
    np.allclose(
        jnp.mean(each, 0), jax.grad(lambda w: jnp.mean(jax.vmap(loss, (None, 0, 0))(w, x, y)))(w)
    )
)

f = lambda w: jnp.tanh(x @ w)
print(jax.jacfwd(f)(w))
print(np.allclose(jax.jacfwd(f)(w), jax.jacrev(f)(w), atol=1e-6))
print(jax.hessian(lambda w: jnp.sum(f(w) ** 2))(w))
value, push = jax.linearize(f, w)
_, pull = jax.vjp(f, w)
print(push(jnp.ones(3)), pull(jnp.ones(5))[0])
hvp = lambda v: jax.jvp(jax.grad(lambda w: jnp.sum(f(w) ** 3)), (w,), (v,))[1]
print(jax.vmap(hvp)(jnp.eye(3)))
print(
    jax.vmap(lambda a, b: a @ b, in_axes=(1, None), out_axes=1)(
        jnp.asarray(x), jnp.ones((5, 2))
    ).shape
)
print(jax.vmap(lambda v: v / jax.lax.psum(v, "i"), axis_name="i")(jnp.arange(1.0, 5.0)))
