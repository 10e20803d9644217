"""Trees of thousands of levels: results, or an error that states the bound."""

from __future__ import annotations

import pickle
from collections.abc import Callable

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


@pytest.mark.parametrize("kind", [tuple, list, dict])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_trees_of_thousands_of_levels_are_an_error(name: str, kind: type) -> None:
    with pytest.raises(TooDeep, match="expected: 1000 levels at most"):
        FUNCTIONS[name](nested(kind, 5000))


@pytest.mark.parametrize("kind", [tuple, dict])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_trees_of_hundreds_of_levels(name: str, kind: type) -> None:
    FUNCTIONS[name](nested(kind, 900))


def test_prefixes_and_files_of_deep_trees_are_an_error() -> None:
    deep = nested(tuple, 5000)
    with pytest.raises(TooDeep):
        tree.broadcast_prefix(None, deep)
    with pytest.raises(TooDeep):
        effax.vmap(lambda x: x, in_axes=(deep,))(ONE)
    exported = export.export(effax.jit(lambda x: x))(nested(tuple, 900))
    with pytest.raises(TooDeep, match="100 levels at most"):
        exported.serialize()
    few = export.export(effax.jit(lambda x: x))(nested(tuple, 90))
    assert export.deserialize(few.serialize()).in_tree == few.in_tree


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
