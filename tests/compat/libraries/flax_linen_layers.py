"""Attention, recurrent cells, embeddings, norms; lifted scan, remat and vmap; a summary of a module."""

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import serialization, traverse_util

key = jax.random.PRNGKey(0)
x = jnp.cos(jnp.arange(2 * 5 * 8.0)).reshape(2, 5, 8)


def apply(module, *args, **kwargs):
    return module.init_with_output(key, *args, **kwargs)


out, _ = apply(nn.MultiHeadDotProductAttention(num_heads=2), x, mask=nn.make_causal_mask(x[..., 0]))
print("attention", out[0, 0])
out, _ = apply(nn.RNN(nn.LSTMCell(4)), x)
print("lstm", out[:, -1])
out, _ = apply(nn.Bidirectional(nn.RNN(nn.GRUCell(3)), nn.RNN(nn.SimpleCell(3))), x)
print("bidirectional", out[0, 0])
out, _ = apply(nn.Embed(6, 4), jnp.array([[1, 2], [5, 0]]))
print("embed", out[1, 0])
for norm in (nn.LayerNorm(), nn.RMSNorm(), nn.GroupNorm(num_groups=2), nn.InstanceNorm()):
    print(type(norm).__name__, apply(norm, x)[0][0, 0, :3])
print("transpose", apply(nn.ConvTranspose(2, (3,), strides=(2,)), x)[0][0, 0])
print("general", apply(nn.DenseGeneral((2, 2), axis=(-2, -1)), x)[0][0])
print("spectral", apply(nn.WeightNorm(nn.Dense(3)), x)[0][0, 0])
print("max", nn.max_pool(x, (2,), strides=(2,))[0, 0, :3])


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(8)(x)), None


stack = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
(out, _), variables = apply(stack(), x, None)
print("scan", out[0, 0, :3], variables["params"]["Dense_0"]["kernel"].shape)
loss = lambda v: jnp.sum(stack().apply(v, x, None)[0] ** 2)
print("grad", jax.jit(jax.grad(loss))(variables)["params"]["Dense_0"]["bias"][:, 0])
many = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True})
print("vmap", apply(many(features=2), x)[0][1, 0])


class Setup(nn.Module):
    def setup(self):
        self.layers = [nn.Dense(4), nn.Dense(2)]
        self.count = self.variable("counter", "n", lambda: jnp.zeros((), jnp.int32))

    def __call__(self, x):
        self.count.value += 1
        for layer in self.layers:
            x = nn.gelu(layer(x))
        self.sow("intermediates", "last", x)
        return x


module = Setup()
variables = module.init(key, x)
_, changed = module.apply(variables, x, mutable=["counter", "intermediates"])
print("counter", changed["counter"]["n"], changed["intermediates"]["last"][0].shape)
bound = module.bind(variables, mutable=["counter"])
print("bound", bound.layers[0](x)[0, 0, :2])
flat = traverse_util.flatten_dict(variables["params"], sep="/")
print("flat", sorted(flat))
restored = serialization.from_bytes(variables, serialization.to_bytes(variables))
print("restored", jax.tree_util.tree_all(jax.tree_util.tree_map(jnp.allclose, restored, variables)))
frozen = flax.core.freeze({"a": {"b": 1}})
print("frozen", frozen["a"]["b"], frozen.copy({"c": 2})["c"])
shapes = jax.eval_shape(module.init, key, x)
print("shapes", shapes["params"]["layers_0"]["kernel"])
print("table", "layers_0" in nn.tabulate(module, key, console_kwargs={"width": 200})(x))
