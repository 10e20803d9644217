"""Keys, typed and raw; splitting and folding; distributions; permutations and choices."""

import jax
import jax.numpy as jnp
from jax import random

key = random.key(42)
print(key.shape, key.dtype, jnp.issubdtype(key.dtype, jax.dtypes.prng_key))
print(random.key_data(key), random.PRNGKey(42))
keys = random.split(key, 3)
print(keys.shape, random.key_data(keys[1]), random.key_data(random.fold_in(key, 7)))
print(random.key_data(random.wrap_key_data(jnp.array([1, 2], jnp.uint32))))
print(random.key_impl(key))
print(random.normal(key, (3,)), random.uniform(key, (2,), minval=-1.0, maxval=1.0))
print(random.randint(key, (4,), 0, 10), random.bits(key, (2,)))
print(
    random.bernoulli(key, 0.3, (5,)),
    random.categorical(key, jnp.log(jnp.array([0.1, 0.9])), shape=(4,)),
)
print(random.permutation(key, 6), random.choice(key, jnp.arange(5), (3,), replace=False))
print(random.choice(key, 4, (3,), p=jnp.array([0.1, 0.2, 0.3, 0.4])))
for name in ("cauchy", "exponential", "gumbel", "laplace", "logistic", "rayleigh", "maxwell"):
    sample = getattr(random, name)
    print(name, sample(key, shape=(2,)) if name != "rayleigh" else sample(key, 1.0, (2,)))
print(random.gamma(key, 2.0, (2,)), random.beta(key, 1.0, 2.0, (2,)), random.t(key, 3.0, (2,)))
print(random.dirichlet(key, jnp.ones(3)), random.poisson(key, 3.0, (3,)))
print(
    random.truncated_normal(key, -1.0, 1.0, (2,)),
    random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2)),
)
print(jax.vmap(lambda k: random.normal(k))(keys))
print(jax.jit(lambda k: random.uniform(random.split(k)[0]))(key))


def walk(key, _):
    key, sub = random.split(key)
    return key, random.normal(sub)


final, steps = jax.lax.scan(walk, key, None, length=4)
print(random.key_data(final), steps)
print(jax.tree.map(jnp.shape, {"k": keys}), jnp.stack([keys[0], keys[2]]).shape)
try:
    key + 1
except TypeError:
    print("TypeError")
