"""Train a classifier of images with Adam: jit, grad, vmap, trees of parameters."""

import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, random, value_and_grad, vmap
from jax.nn import logsumexp, one_hot, relu
from jax.tree_util import tree_map

SIZES = [64, 32, 10]
N_STEPS = int(sys.argv[1])


def digits(n):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, n)
    prototypes = rng.normal(size=(10, 64))
    images = prototypes[labels] + 0.8 * rng.normal(size=(n, 64))
    return images.astype(np.float32), labels


def random_layer_params(m, n, key, scale=1e-1):
    w_key, b_key = random.split(key)
    return scale * random.normal(w_key, (n, m)), scale * random.normal(b_key, (n,))


def init_network_params(sizes, key):
    keys = random.split(key, len(sizes))
    return [
        random_layer_params(m, n, k) for m, n, k in zip(sizes[:-1], sizes[1:], keys, strict=False)
    ]


def predict(params, image):
    activations = image
    for w, b in params[:-1]:
        activations = relu(jnp.dot(w, activations) + b)
    final_w, final_b = params[-1]
    logits = jnp.dot(final_w, activations) + final_b
    return logits - logsumexp(logits)


batched_predict = vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(jnp.sum(batched_predict(params, images) * targets, axis=1))


@jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(batched_predict(params, images), axis=1) == labels)


@partial(jax.jit, static_argnames="rate")
def update(params, state, images, targets, rate):
    value, grads = value_and_grad(loss)(params, images, targets)
    step, m, v = state
    m = tree_map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = tree_map(lambda a, g: 0.999 * a + 0.001 * g**2, v, grads)
    scale = jnp.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    params = jax.tree.map(lambda p, a, b: p - rate * scale * a / (jnp.sqrt(b) + 1e-8), params, m, v)
    return params, (step + 1, m, v), value


def main():
    images, labels = digits(256)
    targets = one_hot(labels, 10)
    params = init_network_params(SIZES, random.PRNGKey(0))
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = (0.0, zeros, zeros)
    start = time.perf_counter()
    for step in range(N_STEPS):
        params, state, value = update(params, state, images, targets, rate=0.01)
        if step % 5 == 0:
            print(f"step {step}: loss {value:.6f}, {accuracy(params, images, labels):.4f}")
    print(f"{time.perf_counter() - start:.1f} seconds", file=sys.stderr)
    norms = [float(jnp.linalg.norm(leaf)) for leaf in jax.tree.leaves(params)]
    print("norms", *norms)
    per_example = jit(vmap(grad(loss), (None, 0, 0)))(params, images[:4, None], targets[:4, None])
    print("per example", *np.asarray(per_example[0][0]).sum(axis=(1, 2)))


if __name__ == "__main__":
    main()
