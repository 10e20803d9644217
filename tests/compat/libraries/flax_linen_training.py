"""A convolutional network with batch norm and dropout, trained with TrainState."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Network(nn.Module):
    features: int = 4

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Conv(self.features, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x)
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.Dense(8)(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(3)(x)


class State(train_state.TrainState):
    batch_stats: dict


model = Network()
x = jnp.sin(jnp.arange(4 * 6 * 6.0)).reshape(4, 6, 6, 1)
labels = jnp.array([0, 1, 2, 1])
variables = model.init(jax.random.PRNGKey(0), x, train=False)
for path, leaf in jax.tree_util.tree_leaves_with_path(variables["params"]):
    print(jax.tree_util.keystr(path), leaf.shape)
state = State.create(
    apply_fn=model.apply,
    params=variables["params"],
    tx=optax.sgd(0.1, momentum=0.9),
    batch_stats=variables["batch_stats"],
)


@jax.jit
def step(state, x, labels, key):
    def loss(params):
        logits, changed = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            x,
            train=True,
            rngs={"dropout": key},
            mutable=["batch_stats"],
        )
        value = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return value, changed

    (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads)
    return state.replace(batch_stats=changed["batch_stats"]), value


for i in range(4):
    state, value = step(state, x, labels, jax.random.PRNGKey(i))
    print("loss", value)
stats = state.batch_stats["BatchNorm_0"]
print("stats", stats["mean"], stats["var"])
variables = {"params": state.params, "batch_stats": state.batch_stats}
print("logits", model.apply(variables, x, train=False)[0])
