"""Trees of thousands of levels: results, or an error that states the bound."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import effax
from effax import export, lax, tree, tree_util
from effax import numpy as jnp
from effax.ir.errors import BadArgument, TooDeep

PyTree = tree.PyTree
ONE = jnp.asarray(1.0, "float32")


def nested(kind: type, levels: int) -> PyTree:
    x: PyTree = ONE
    for _ in range(levels):
        x = {"a": x} if kind is dict else kind((x,))
    return x


def first(x: PyTree) -> effax.Array:
    leaf: effax.Array = tree.leaves(x)[0]
    return leaf


FUNCTIONS: dict[str, Callable[[PyTree], object]] = {
    "flatten": tree.flatten,
    "leaves": tree.leaves,
    "structure": lambda x: hash(tree.structure(x)),
    "equality": lambda x: tree.structure(x) == tree.structure(x),
    "text": lambda x: str(tree.structure(x)),
    "pickle": lambda x: pickle.loads(pickle.dumps(tree.structure(x))),
    "map": lambda x: tree.map(lambda a, b: a + b, x, x),
    "reduce": lambda x: tree.reduce(lambda a, b: a + b, x),
    "paths": tree_util.tree_flatten_with_path,
    "unflatten": lambda x: tree.unflatten(tree.structure(x), [1.0]),
    "transpose": lambda x: tree.transpose(
        tree.structure(x), tree.structure((0, 0)), tree.map(lambda a: (a, a), x)
    ),
    "jit": effax.jit(lambda x: x),
    "grad": effax.grad(first),
    "vmap": effax.vmap(first, in_axes=None, axis_size=2),
    "make_jaxpr": effax.make_jaxpr(lambda x: x),
    "scan": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=2),
    "cond": lambda x: lax.cond(True, lambda y: y, lambda y: y, x),
    "checkpoint": effax.checkpoint(lambda x: x),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tuple, dict])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_trees_of_thousands_of_levels(name: str, kind: type) -> None:
    FUNCTIONS[name](nested(kind, 5000))


@pytest.mark.slow
def test_prefixes_and_files_of_deep_trees() -> None:
    deep = nested(tuple, 5000)
    assert tree.broadcast_prefix(None, deep) == [None]
    assert tree.broadcast_prefix((3, deep), (ONE, deep)) == [3, ONE]
    axes = tree.map(lambda _: 0, deep)
    rows = tree.map(lambda x: x + jnp.arange(3.0), deep)
    out = effax.vmap(lambda x: tree.leaves(x)[0] * 2, in_axes=(axes,))(rows)
    assert out.shape == (3,)
    with pytest.raises(TooDeep, match="100 levels at most"):
        export.export(effax.jit(lambda x: x))(deep).serialize()
    few = export.export(effax.jit(lambda x: x))(nested(tuple, 90))
    assert export.deserialize(few.serialize()).in_tree == few.in_tree


@dataclass
class Node:
    """A node with a leaf beside its only child."""

    child: PyTree
    leaf: PyTree


class Maker:
    """A node that makes its children when it is flattened."""

    def __init__(self, levels: int) -> None:
        self.levels = levels


tree_util.register_dataclass(Node)
tree_util.register_pytree_node(
    Maker,
    lambda x: ((Maker(x.levels - 1) if x.levels else 1.0,), x.levels),
    lambda levels, _: Maker(levels),
)


@pytest.mark.slow
def test_deep_trees_of_many_leaves_and_registered_classes() -> None:
    x: PyTree = ({"b": None, "a": 0},)
    for i in range(1, 600):
        x = [Node({"k": x}, i), None, (i,)]
    found, spec = tree.flatten(x)
    assert len(found) == spec.num_leaves == 1199
    expected = [0, *[i for i in range(1, 600) for _ in range(2)]]
    assert found == expected
    same = tree.unflatten(spec, found)
    assert tree.structure(same) == spec
    assert tree.structure(x, is_leaf=lambda y: isinstance(y, Node)).num_leaves == 2
    path = tree.paths([[x[0].child["k"][0].child]], is_leaf=lambda y: isinstance(y, int))[0]
    assert path.startswith("[0][0]['k'][0].child['k']")
    assert path.endswith("['k'][0]['a']")
    assert tree.map(lambda a, b: a - b, x, same)[2] == (0,)


def test_a_class_that_makes_its_children_is_an_error_beyond_a_thousand_levels() -> None:
    assert tree.leaves(Maker(500)) == [1.0]
    with pytest.raises(TooDeep, match="1000 levels at most"):
        tree.flatten(Maker(5000))


@pytest.mark.parametrize("levels", [70, 900, 5000])
def test_deep_lists_are_no_arrays(levels: int) -> None:
    with pytest.raises(BadArgument, match="do not form an array"):
        jnp.asarray(nested(list, levels))


def test_the_recursion_of_a_caller_is_its_own() -> None:
    def forever(x: object) -> bool:
        return forever(x)

    with pytest.raises(RecursionError) as caught:
        tree.flatten((1, 2), is_leaf=forever)
    assert not isinstance(caught.value, TooDeep)
