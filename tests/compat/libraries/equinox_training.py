"""Modules trained with optax: filtered transformations, tree surgery, norms, attention, cells, states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Classifier(eqx.Module):
    encoder: eqx.nn.MLP
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, key):
        self.encoder = eqx.nn.MLP(3, 2, width_size=8, depth=2, key=key)
        self.scale = jnp.ones(2)
        self.name = "classifier"

    def __call__(self, x):
        return self.encoder(x) * self.scale


model = Classifier(jax.random.PRNGKey(0))
x = jax.random.normal(jax.random.PRNGKey(1), (16, 3))
y = jnp.stack([jnp.sum(x, 1), jnp.prod(x, 1)], 1)


@eqx.filter_value_and_grad
def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


optimizer = optax.adam(1e-2)


@eqx.filter_jit
def step(model, state, x, y):
    value, grads = loss(model, x, y)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


state = optimizer.init(eqx.filter(model, eqx.is_array))
for i in range(8):
    model, state, value = step(model, state, x, y)
    if i % 4 == 3:
        print("loss", i, value)

edited = eqx.tree_at(lambda m: m.encoder.layers[0].bias, model, jnp.ones(8))
print("edited", edited(x[0]))
arrays, static = eqx.partition(model, eqx.is_inexact_array)
print(
    "combined",
    eqx.combine(arrays, static)(x[0]),
    eqx.tree_equal(model, eqx.combine(arrays, static)),
)
print(
    "ensemble", eqx.filter_vmap(Classifier)(jax.random.split(jax.random.PRNGKey(2), 3)).scale.shape
)

shapes = eqx.filter_eval_shape(Classifier, jax.random.PRNGKey(0))
print("shape", shapes.scale.shape, shapes.name)
print("checkpoint", eqx.filter_grad(lambda x: jnp.sum(eqx.filter_checkpoint(model)(x)))(x[0]))
print("jvp", eqx.filter_jvp(lambda x: model(x), (x[0],), (x[1],))[1])

conv = eqx.nn.Conv2d(1, 2, kernel_size=3, key=jax.random.PRNGKey(3))
pool = eqx.nn.MaxPool2d(2, 2)
print("conv", pool(conv(jnp.sin(jnp.arange(36.0)).reshape(1, 6, 6)))[:, 0, 0])

attention = eqx.nn.MultiheadAttention(2, 4, key=jax.random.PRNGKey(4))
sequence = jnp.cos(jnp.arange(12.0)).reshape(3, 4)
print("attention", attention(sequence, sequence, sequence, mask=jnp.tril(jnp.ones((3, 3), bool))))

cell = eqx.nn.GRUCell(4, 2, key=jax.random.PRNGKey(5))
carry, _ = jax.lax.scan(lambda c, x: (cell(x, c), None), jnp.zeros(2), sequence)
print("gru", carry)
lstm = eqx.nn.LSTMCell(4, 2, key=jax.random.PRNGKey(5))
print("lstm", lstm(sequence[0], (jnp.zeros(2), jnp.ones(2)))[0])
norms = (eqx.nn.LayerNorm(4), eqx.nn.RMSNorm(4), eqx.nn.GroupNorm(2, 4))
print("norms", [norm(sequence[0])[0] for norm in norms])
dropout = eqx.nn.Dropout(0.5)
print("dropout", dropout(jnp.ones(6), key=jax.random.PRNGKey(6)))

batch_norm, buffers = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
run = jax.vmap(batch_norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
out, buffers = run(x, buffers)
print("batch norm", out[0])
print(
    "inference",
    jax.vmap(eqx.nn.inference_mode(batch_norm), axis_name="b", in_axes=(0, None))(x, buffers)[0][1],
)
