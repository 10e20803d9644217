"""A network trained with chained transformations, a schedule, masks and accumulated gradients."""

import jax
import jax.numpy as jnp
import optax


def network(params, x):
    for layer in params["hidden"]:
        x = jax.nn.tanh(x @ layer["w"] + layer["b"])
    return x @ params["out"]["w"] + params["out"]["b"]


def layer(key, n, m):
    return {"w": jax.random.normal(key, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}


keys = jax.random.split(jax.random.PRNGKey(0), 4)
params = {"hidden": [layer(keys[0], 3, 8), layer(keys[1], 8, 8)], "out": layer(keys[2], 8, 4)}
x = jax.random.normal(keys[3], (32, 3))
labels = jnp.argmax(x @ jnp.ones((3, 4)) + jnp.arange(4.0) * x[:, :1], axis=1)


def loss(params, x, labels):
    logits = network(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, warmup_steps=3, decay_steps=20)
decay = jax.tree_util.tree_map(lambda leaf: leaf.ndim > 1, params)
optimizer = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01, mask=decay)
)


@jax.jit
def step(params, state, x, labels):
    value, grads = jax.value_and_grad(loss)(params, x, labels)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


state = optimizer.init(params)
for i in range(12):
    params, state, value = step(params, state, x, labels)
    if i % 4 == 3:
        print("loss", i, value)
print("norm", optax.global_norm(params))

groups = {"hidden": "fast", "out": "slow"}
both = optax.multi_transform({"fast": optax.adam(0.1), "slow": optax.sgd(0.01)}, groups)
every = optax.MultiSteps(both, every_k_schedule=2)
state = every.init(params)
for part in (slice(16), slice(16, 32), slice(16), slice(16, 32)):
    grads = jax.grad(loss)(params, x[part], labels[part])
    updates, state = jax.jit(every.update)(grads, state, params)
    params = optax.apply_updates(params, updates)
    print("part", loss(params, x, labels), every.has_updated(state))

average = optax.ema(0.9)
moving = average.init(params)
_, moving = average.update(params, moving)
print("average", moving.ema["out"]["b"])

found = optax.inject_hyperparams(optax.adam)(learning_rate=optax.exponential_decay(0.1, 5, 0.5))
state = found.init(params)
_, state = found.update(jax.grad(loss)(params, x, labels), state, params)
print("rate", state.hyperparams["learning_rate"])

logits = network(params, x)
one_hot = jax.nn.one_hot(labels, 4)
print("huber", optax.huber_loss(logits, one_hot).mean())
print("cosine", optax.cosine_distance(logits, one_hot).mean())
print("focal", optax.sigmoid_focal_loss(logits, one_hot).mean())
print("l2", optax.l2_loss(logits, one_hot).mean())
print("smooth", optax.smooth_labels(one_hot, 0.1)[0])
print("hinge", optax.hinge_loss(logits[:, 0], jnp.sign(x[:, 0])).mean())
print("kl", optax.kl_divergence(jax.nn.log_softmax(logits), one_hot * 0.9 + 0.025).mean())
lengths = jnp.where(jnp.arange(6)[None] < jnp.array([[6], [4]]), 0.0, 1.0)
ctc = optax.ctc_loss(
    jnp.sin(jnp.arange(60.0).reshape(2, 6, 5)),
    lengths,
    jnp.array([[1, 2], [3, 1]]),
    jnp.zeros((2, 2)),
)
print("ctc", ctc)
