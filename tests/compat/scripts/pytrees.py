"""Trees of containers and classes: map, flatten, paths, registration, transposition."""

import collections
import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from jax import tree_util
from jax.flatten_util import ravel_pytree

Point = collections.namedtuple("Point", ["x", "y"])
tree = {"b": [1, (2.0, None)], "a": Point(jnp.arange(2), 3)}
leaves, treedef = jax.tree.flatten(tree)
print(leaves, treedef.num_leaves)
print(sorted(jax.tree.unflatten(treedef, [leaf * 2 for leaf in leaves]).items()))
print(sorted(jax.tree.map(lambda a, b: a + b, tree, tree).items()))
print(jax.tree.structure(tree) == treedef)
for path, leaf in tree_util.tree_leaves_with_path(tree):
    print(tree_util.keystr(path), leaf)
print(
    sorted(
        jax.tree.map_with_path(
            lambda path, x: tree_util.keystr(path, simple=True, separator="/"), tree
        ).items()
    )
)


@tree_util.register_pytree_node_class
class Range:
    def __init__(self, low, high, name):
        self.low, self.high, self.name = low, high, name

    def tree_flatten(self):
        return (self.low, self.high), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name)


doubled = jax.tree.map(lambda x: 2 * x, Range(1, 2, "r"))
print(doubled.low, doubled.high, doubled.name)


@partial(tree_util.register_dataclass, data_fields=["w"], meta_fields=["kind"])
@dataclasses.dataclass
class Layer:
    w: jax.Array
    kind: str


grads = jax.jit(jax.grad(lambda layer: jnp.sum(layer.w**2)))(Layer(jnp.arange(3.0), "dense"))
print(grads.w, grads.kind)


class Keyed:
    def __init__(self, a):
        self.a = a


tree_util.register_pytree_with_keys(
    Keyed, lambda k: (((tree_util.GetAttrKey("a"), k.a),), None), lambda _, c: Keyed(*c)
)
print([tree_util.keystr(p) for p, _ in tree_util.tree_flatten_with_path({"k": Keyed([1, 2])})[0]])
print(
    jax.tree.transpose(
        jax.tree.structure([0, 0]), jax.tree.structure({"x": 0}), [{"x": 1}, {"x": 2}]
    )
)
print(jax.tree.reduce(lambda a, b: a + b, {"x": [1, 2], "y": 3}), jax.tree.all([True, 1]))
print(jax.tree.leaves([None, 1], is_leaf=lambda x: x is None), jax.tree.leaves(None))
print(jax.tree.broadcast([1, 2], [{"a": 0}, (0, 0)]))
flat, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.zeros(1)})
print(flat, unravel(flat)["w"].shape)
try:
    jax.tree.map(lambda a, b: a, {"x": 1}, {"y": 1})
except ValueError:
    print("ValueError")
print(tree_util.tree_map(lambda x: x + 1, collections.OrderedDict(z=1, a=2)))
print(jax.tree.map(lambda x: x + 1, tree_util.Partial(lambda a, b: a + b, 1))(2))
