"""A recurrent network by scan, trained through time, with remat; other control flow."""

import jax
import jax.numpy as jnp
from jax import lax

keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "w": jax.random.normal(keys[0], (4, 4)) * 0.4,
    "u": jax.random.normal(keys[1], (1, 4)),
    "v": jax.random.normal(keys[2], (4, 1)),
}
signal = jnp.sin(jnp.linspace(0.0, 6.0, 20))[:, None]


def forward(params, xs):
    def cell(h, x):
        h = jnp.tanh(h @ params["w"] + x @ params["u"])
        return h, h @ params["v"]

    return lax.scan(jax.checkpoint(cell), jnp.zeros(4), xs)[1]


def loss(params):
    return jnp.mean((forward(params, signal[:-1]) - signal[1:]) ** 2)


@jax.jit
def step(params):
    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


for _ in range(15):
    params, value = step(params)
print("loss", value)
print("forward", forward(params, signal)[-3:, 0])
print("reverse", lax.scan(lambda c, x: (0.5 * c + x, c), 0.0, jnp.arange(5.0), reverse=True)[1])
print("unroll", lax.scan(lambda c, x: (c * x, None), 1.0, jnp.arange(1.0, 6.0), unroll=2)[0])
print("while", lax.while_loop(lambda c: c[0] < 100.0, lambda c: (c[0] * 2, c[1] + 1), (1.0, 0)))
print("fori", lax.fori_loop(0, 10, lambda i, x: x + i * x, 1.0))
print("cond", jax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(-1.0))
branches = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
print(
    "switch", jax.vmap(lambda i, x: lax.switch(i, branches, x))(jnp.array([0, 1, 5]), jnp.ones(3))
)
print("map", lax.map(lambda x: x**2, jnp.arange(6.0), batch_size=4))
print("associative", lax.associative_scan(jnp.maximum, jnp.array([1.0, 3.0, 2.0, 5.0, 4.0])))
print("select", lax.select(jnp.array([True, False]), jnp.ones(2), jnp.zeros(2)))
print("slice", lax.dynamic_slice(signal, (3, 0), (2, 1))[:, 0])
print("update", lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,)))
