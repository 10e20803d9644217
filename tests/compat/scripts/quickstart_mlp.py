"""A network of two layers, gradients, jit and vmap."""

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap


def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        (random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params, image):
    for w, b in params[:-1]:
        image = jax.nn.relu(image @ w + b)
    w, b = params[-1]
    logits = image @ w + b
    return logits - jax.scipy.special.logsumexp(logits)


batched = vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(jnp.sum(batched(params, images) * targets, axis=1))


@jit
def update(params, images, targets):
    grads = grad(loss)(params, images, targets)
    return [(w - 0.5 * dw, b - 0.5 * db) for (w, b), (dw, db) in zip(params, grads)]


params = init(random.key(0), [8, 16, 3])
images = random.normal(random.key(1), (24, 8))
labels = jnp.argmax(images[:, :3], axis=1)
targets = jax.nn.one_hot(labels, 3)
for _ in range(20):
    params = update(params, images, targets)
print("loss", loss(params, images, targets))
print("accuracy", jnp.mean(jnp.argmax(batched(params, images), axis=1) == labels))
print(jax.make_jaxpr(lambda x: jnp.sum(x**2))(jnp.ones(3)).jaxpr.outvars[0].aval.dtype)
print(jax.devices()[0].platform, jax.default_backend(), jax.device_count())
