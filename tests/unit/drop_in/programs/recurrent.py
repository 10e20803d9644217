"""Train a recurrent network to add a sequence: scan, cond, checkpoint, custom derivatives."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import register_pytree_node_class


@register_pytree_node_class
class Cell:
    def __init__(self, w, u, b):
        self.w, self.u, self.b = w, u, b

    def tree_flatten(self):
        return (self.w, self.u, self.b), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)

    def __call__(self, h, x):
        return jnp.tanh(h @ self.w + x @ self.u + self.b)


@jax.custom_vjp
def clip_gradient(x):
    return x


clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))


def init(key, hidden):
    k1, k2, k3 = jax.random.split(key, 3)
    cell = Cell(
        jax.random.normal(k1, (hidden, hidden)) / jnp.sqrt(hidden),
        jax.random.uniform(k2, (1, hidden), minval=-1, maxval=1),
        jnp.zeros(hidden),
    )
    return {"cell": cell, "out": jax.random.normal(k3, (hidden,)) / jnp.sqrt(hidden)}


def run(params, xs, length):
    @jax.checkpoint
    def step(h, inp):
        i, x = inp
        new = clip_gradient(params["cell"](h, x))
        h = lax.cond(i < length, lambda: new, lambda: h)
        return h, h.mean()

    h, means = lax.scan(step, jnp.zeros(params["out"].shape), (jnp.arange(len(xs)), xs))
    return h @ params["out"], means


def loss(params, xs, lengths):
    predicted, _ = jax.vmap(run, in_axes=(None, 0, 0))(params, xs, lengths)
    mask = jnp.arange(xs.shape[1]) < lengths[:, None]
    return jnp.mean((predicted - jnp.where(mask, xs[..., 0], 0).sum(1)) ** 2)


@jax.jit
def train(params, xs, lengths):
    def body(params, _):
        value, grads = jax.value_and_grad(loss)(params, xs, lengths)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value

    return lax.scan(body, params, None, length=20)


key, data_key, length_key = jax.random.split(jax.random.PRNGKey(1), 3)
params = init(key, 8)
xs = jax.random.uniform(data_key, (16, 6, 1))
lengths = jax.random.randint(length_key, (16,), 1, 7)
params, losses = train(params, xs, lengths)
print("losses", *losses[::4])
print("prediction", *jax.jit(run)(params, xs[0], lengths[0])[1])
print("types", losses.dtype, losses.shape, jax.tree.structure(params).num_leaves)
hessian = jax.hessian(lambda out: loss({**params, "out": out}, xs, lengths))(params["out"])
print("hessian", jnp.trace(hessian), jnp.allclose(hessian, hessian.T, atol=1e-5))
