"""Functions transformed with and without state: networks, batch norm, recurrent cores, lifted loops."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

x = jnp.sin(jnp.arange(4 * 6 * 6.0)).reshape(4, 6, 6, 1)
labels = jnp.array([0, 1, 2, 1])


def network(x, is_training):
    x = hk.Conv2D(4, 3)(x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training)
    x = hk.avg_pool(jax.nn.relu(x), 2, 2, "VALID")
    x = hk.nets.MLP([8, 3])(hk.Flatten()(x))
    return x + hk.get_parameter("shift", (3,), init=jnp.zeros)


model = hk.without_apply_rng(hk.transform_with_state(network))
params, state = model.init(jax.random.PRNGKey(0), x, True)
print("shapes", {name: {k: v.shape for k, v in sub.items()} for name, sub in params.items()})
optimizer = optax.sgd(0.1, momentum=0.9)
opt_state = optimizer.init(params)


@jax.jit
def step(params, state, opt_state):
    def loss(params):
        logits, changed = model.apply(params, state, x, True)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed

    (value, state_), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), state_, opt, value


for _ in range(4):
    params, state, opt_state, value = step(params, state, opt_state)
    print("loss", value)
print("logits", model.apply(params, state, x, False)[0][0])

sequence = jnp.cos(jnp.arange(5 * 2 * 3.0)).reshape(5, 2, 3)


def recurrent(sequence):
    core = hk.DeepRNN([hk.LSTM(4), jax.nn.relu, hk.GRU(2)])
    outputs, _ = hk.dynamic_unroll(core, sequence, core.initial_state(2))
    return hk.dropout(hk.next_rng_key(), 0.5, outputs)


unroll = hk.transform(recurrent)
weights = unroll.init(jax.random.PRNGKey(1), sequence)
print("unroll", unroll.apply(weights, jax.random.PRNGKey(2), sequence)[-1])


def lifted(x):
    layer = hk.Linear(3)
    x, _ = hk.scan(lambda c, _: (jnp.tanh(layer(c)), None), layer(x), None, length=3)
    x = hk.vmap(hk.LayerNorm(-1, True, True), split_rng=False)(x)
    x = hk.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x - 1, x)
    x = hk.remat(lambda x: jnp.sin(layer(x)))(x)
    return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x)


lift = hk.without_apply_rng(hk.transform(lifted))
weights = lift.init(jax.random.PRNGKey(3), sequence[0])
print("lifted", lift.apply(weights, sequence[0]))
print(
    "grad", jax.jit(jax.grad(lambda w: jnp.sum(lift.apply(w, sequence[0]))))(weights)["linear"]["b"]
)


def counting():
    count = hk.get_state("count", (), jnp.int32, init=jnp.zeros)
    hk.set_state("count", count + 1)
    return count


counter = hk.transform_with_state(counting)
_, state = counter.init(None)
for _ in range(3):
    count, state = jax.jit(counter.apply)({}, state, None)
print("count", count)
print("embed", hk.testing.transform_and_run(lambda: hk.Embed(4, 2)(jnp.array([1, 3])))())
print(
    "size",
    hk.data_structures.tree_size(weights),
    sorted(hk.data_structures.to_mutable_dict(weights)),
)
