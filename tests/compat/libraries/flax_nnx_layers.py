"""Attention, cells and norms of NNX; lifted vmap, scan, remat, grad and cond; state and mutable variables."""

import jax
import jax.numpy as jnp
from flax import nnx

x = jnp.cos(jnp.arange(2 * 5 * 8.0)).reshape(2, 5, 8)
attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=nnx.Rngs(0))
print("attention", attention(x, mask=nnx.make_causal_mask(x[..., 0]))[0, 0])
grads = nnx.grad(lambda m: jnp.sum(m(x) ** 2))(attention)
print("grad", grads["query"]["kernel"][0, 0])
cached = nnx.MultiHeadAttention(2, 8, decode=True, rngs=nnx.Rngs(0))
cached.init_cache((2, 5, 8))
print("decode", [cached(x[:, i : i + 1])[0, 0, 0] for i in range(3)])
rnn = nnx.RNN(nnx.LSTMCell(8, 4, rngs=nnx.Rngs(1)))
print("lstm", rnn(x)[:, -1])
gru = nnx.GRUCell(8, 3, rngs=nnx.Rngs(1))
print("gru", gru(jnp.zeros((2, 3)), x[:, 0])[0])
for norm in (nnx.LayerNorm(8, rngs=nnx.Rngs(0)), nnx.RMSNorm(8, rngs=nnx.Rngs(0))):
    print(type(norm).__name__, norm(x)[0, 0, :3])
print("embed", nnx.Embed(6, 4, rngs=nnx.Rngs(2))(jnp.array([3, 0])))
print("einsum", nnx.Einsum("bth,ho->bto", (8, 2), (2,), rngs=nnx.Rngs(2))(x)[0, 0])
print("lora", nnx.LoRA(8, 2, 4, rngs=nnx.Rngs(3))(x)[0, 0])


@nnx.split_rngs(splits=3)
@nnx.vmap(in_axes=(0,))
def make(rngs):
    return nnx.Linear(8, 8, rngs=rngs)


layers = make(nnx.Rngs(4))
print("made", layers.kernel.shape)


@nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
def forward(layer, x):
    return nnx.tanh(layer(x))


print("scan", forward(layers, x)[0, 0, :3])


@nnx.remat
def rematerialized(layer, x):
    return jnp.sum(nnx.tanh(layer(x)))


single = nnx.Linear(8, 2, rngs=nnx.Rngs(5))
print("remat", nnx.grad(rematerialized)(single, x)["bias"])


class Counter(nnx.Variable):
    pass


class Counting(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(8, 2, rngs=rngs)
        self.count = Counter(jnp.array(0))

    def __call__(self, x):
        self.count[...] += 1
        return self.linear(x)


counting = Counting(nnx.Rngs(6))


@nnx.jit
def twice(module, x):
    return module(x) + module(x)


print("twice", twice(counting, x)[0, 0], counting.count[...])
state = nnx.state(counting, Counter)
print("state", jax.tree_util.tree_leaves(state))
nnx.update(counting, jax.tree_util.tree_map(lambda c: c + 5, state))
print("update", counting.count[...])
print(
    "cond",
    nnx.cond(True, lambda m, x: m(x), lambda m, x: m(x) * 0, counting, x)[0, 0],
    counting.count[...],
)
shapes = nnx.eval_shape(lambda: Counting(nnx.Rngs(0)))
print("shapes", shapes.linear.kernel.shape)
sequential = nnx.Sequential(
    nnx.Linear(8, 4, rngs=nnx.Rngs(7)), nnx.relu, nnx.Linear(4, 2, rngs=nnx.Rngs(8))
)
print("sequential", sequential(x)[0, 0])
copy = nnx.clone(sequential)
print("clone", jnp.allclose(copy(x), sequential(x)))
