"""Linear regression: closed form, Newton's method, and gradient descent with optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

x = np.sin(np.arange(60.0) ** 2).reshape(20, 3).astype(np.float32)
y = x @ np.array([1.0, -2.0, 0.5], np.float32) + 0.3


def loss(params):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
optimizer = optax.adam(0.1)
state = optimizer.init(params)


@jax.jit
def step(params, state):
    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


for i in range(100):
    params, state, value = step(params, state)
print(value, params["w"], params["b"])
design = jnp.concatenate([x, jnp.ones((20, 1))], axis=1)
print(jnp.linalg.lstsq(design, y)[0])
flat = jnp.zeros(4)
objective = lambda flat: jnp.mean((design @ flat - y) ** 2)
print(flat - jnp.linalg.solve(jax.hessian(objective)(flat), jax.grad(objective)(flat)))
cho = jax.scipy.linalg.cho_factor(design.T @ design)
print(jax.scipy.linalg.cho_solve(cho, design.T @ y))
