"""A network of NNX with batch norm and dropout, trained with nnx.Optimizer under nnx.jit."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Network(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 4, kernel_size=(3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.hidden = nnx.Linear(36, 8, rngs=rngs)
        self.out = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.avg_pool(x, (2, 2), strides=(2, 2))
        x = self.dropout(nnx.relu(self.hidden(x.reshape(x.shape[0], -1))))
        return self.out(x)


model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
x = jnp.sin(jnp.arange(4 * 6 * 6.0)).reshape(4, 6, 6, 1)
labels = jnp.array([0, 1, 2, 1])


def loss_fn(model, x, labels):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits


@nnx.jit
def step(model, optimizer, metrics, x, labels):
    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, labels)
    metrics.update(loss=loss, logits=logits, labels=labels)
    optimizer.update(model, grads)
    return loss


for _ in range(4):
    print("loss", step(model, optimizer, metrics, x, labels))
print("metrics", {name: float(value) for name, value in metrics.compute().items()})
print("mean", model.norm.mean[...])
model.eval()
print("logits", model(x)[0])
graph, params, rest = nnx.split(model, nnx.Param, ...)
print("merged", nnx.merge(graph, params, rest)(x)[0])
print("leaves", len(jax.tree_util.tree_leaves(params)), sorted(params))
