"""Trees: leaves, paths, and user-defined classes."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import tree, tree_util
from effax.ir.errors import BadArgument, EffaxError, IllTyped

jax: Any = effax


class Point(NamedTuple):
    x: Any
    y: Any


TREE = {"b": [1, (2, None)], "a": Point(3, {}), "c": ()}


def test_leaves_come_in_the_order_of_keys() -> None:
    leaves, treedef = tree.flatten(TREE)
    assert leaves == [3, 1, 2]
    assert tree.unflatten(treedef, leaves) == TREE
    assert tree.structure(TREE) == treedef
    assert tree.structure(TREE) != tree.structure({**TREE, "c": []})


def test_paths_say_where_leaves_are() -> None:
    found = tree_util.tree_leaves_with_path(TREE)
    assert [(tree_util.keystr(path), leaf) for path, leaf in found] == [
        ("['a'].x", 3),
        ("['b'][0]", 1),
        ("['b'][1][0]", 2),
    ]
    assert found[0][0] == (tree_util.DictKey("a"), tree_util.GetAttrKey("x"))
    assert found[1][0] == (tree_util.DictKey("b"), tree_util.SequenceKey(0))
    named = tree_util.tree_map_with_path(lambda path, x, y: (len(path), x + y), TREE, TREE)
    assert named == {"b": [(2, 2), ((3, 4), None)], "a": Point((2, 6), {}), "c": ()}


def test_folding() -> None:
    assert tree.reduce(operator.add, TREE) == 6
    assert tree.reduce(lambda c, x: [*c, x], TREE, []) == [3, 1, 2]
    assert tree.reduce(operator.add, {}, 5) == 5
    with pytest.raises(BadArgument, match="without leaves"):
        tree.reduce(operator.add, {})
    assert tree.all(TREE) and not tree.all([1, 0])
    assert tree.all_leaves([1, "a"]) and not tree.all_leaves([1, [2]])


def test_transposing_exchanges_layers() -> None:
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    found = tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert found == {"a": [1, 3], "b": [2, 4]}


TREES: list[tuple[Any, Any]] = [
    ([(1, 2, 3), (4, 5, 6)], ([1, 4], [2, 5], [3, 6])),
    ([{"b": 1, "a": [2]}, {"a": [4], "b": 3}], {"a": [[2, 4]], "b": [1, 3]}),
    ([(1, None), (2, None)], ([1, 2], None)),
    ([1, 2], [1, 2]),
    ([(), ()], ()),
]


@pytest.mark.parametrize(("given", "wanted"), TREES, ids=repr)
def test_transposing_infers_the_inner_structure(given: Any, wanted: Any) -> None:
    assert tree.transpose(tree.structure([0, 0]), None, given) == wanted
    assert tree.transpose(tree.structure([0, 0]), tree.structure(given[0]), given) == wanted


def test_transposing_trees_of_other_structure_is_refused() -> None:
    outer = tree.structure([0, 0])
    for structure, inner, given in (
        (outer, None, [(1, 2), (3,)]),
        (outer, None, [1]),
        (outer, tree.structure((0, 0)), [(1, 2), {"a": 3, "b": 4}]),
        (tree.structure([]), None, []),
    ):
        with pytest.raises(EffaxError, match="does not have the structures"):
            tree.transpose(structure, inner, given)


def test_trees_of_other_structure_are_refused() -> None:
    with pytest.raises(EffaxError, match="tree number 2 has another structure"):
        tree.map(operator.add, [1, 2], [1])
    with pytest.raises(EffaxError, match="do not fit the structure"):
        tree.unflatten(tree.structure([0, 0]), [1])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = field(default="layer", metadata={"static": True})


@tree_util.register_static
@dataclass(frozen=True)
class Setting:
    rate: float


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.left, self.right), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> Pair:
        return cls(*children)


def test_dataclasses_are_trees() -> None:
    layer = Layer(jnp.ones(2), 3.0)
    grads = jax.grad(lambda p: (p.w * p.b).sum())(layer)
    assert isinstance(grads, Layer) and grads.name == "layer"
    np.testing.assert_allclose(grads.w, [3.0, 3.0])
    assert [tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(layer)] == [".w", ".b"]
    other = Layer(jnp.ones(2), 3.0, "other")
    assert tree.structure(layer) != tree.structure(other)
    with pytest.raises(EffaxError, match=r"grad\(<lambda>\)|p\.w|float"):
        jax.grad(lambda p: p.b)(Layer("no", 1.0))


def test_fields_are_data_or_meta() -> None:
    @dataclass
    class Bad:
        x: Any
        y: Any

    with pytest.raises(BadArgument, match=r"data or meta(.|\n)*found: +x"):
        tree_util.register_dataclass(Bad, ["x"], [])
    with pytest.raises(IllTyped, match="takes a dataclass"):
        tree_util.register_dataclass(Pair)


def test_static_values_are_no_leaves() -> None:
    assert tree.leaves([Setting(0.1), 1]) == [1]

    @effax.jit
    def scaled(setting: Setting, x: Any) -> Any:
        assert isinstance(setting.rate, float)
        return setting.rate * x

    np.testing.assert_allclose(scaled(Setting(0.5), 2.0), 1.0)
    np.testing.assert_allclose(scaled(Setting(2.0), 2.0), 4.0)


def test_classes_with_methods_are_trees() -> None:
    found = jax.jit(lambda p: Pair(p.right, p.left * 2))(Pair(1.0, jnp.ones(2)))
    np.testing.assert_allclose(found.right, 2.0)
    keys = [tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(Pair(0, [1]))]
    assert keys == ["[<flat index 0>]", "[<flat index 1>][0]"]


def test_partial_functions_are_trees() -> None:
    def line(a: Any, b: Any, x: Any) -> Any:
        return a * x + b

    f = tree_util.Partial(line, jnp.float32(2.0), b=1.0)
    assert len(tree.leaves(f)) == 2
    np.testing.assert_allclose(jax.jit(lambda g, x: g(x=x))(f, 3.0), 7.0)
    grads = jax.grad(lambda g: g(x=3.0))(f)
    np.testing.assert_allclose(grads.args[0], 3.0)
    np.testing.assert_allclose(grads.keywords["b"], 1.0)


def test_a_partial_of_a_partial_keeps_its_function_whole() -> None:
    inner = partial(operator.add, 1)
    outer = tree_util.Partial(inner, 2)
    assert outer.args == (2,) and outer.func == inner and outer() == 3
    assert hash(outer.func) == hash(tree_util.Partial(inner, 3).func)
    assert tree.structure(outer) == tree.structure(tree_util.Partial(inner, 3))
    assert tree_util.Partial(tree_util.Partial(operator.add, 1), 2).args == (1, 2)


class _Flat:
    """A node that keeps the structure of its children, which it flattens at once."""

    def __init__(self, leaves: list[Any], treedef: Any) -> None:
        self.leaves, self.treedef = leaves, treedef


def _unflatten_flat(treedef: Any, leaves: Any) -> _Flat:
    found, inner = tree.flatten(tree.unflatten(treedef, leaves))
    return _Flat(found, inner)


tree.register_pytree_node(_Flat, lambda x: (x.leaves, x.treedef), _unflatten_flat)


def test_transpose_of_a_node_whose_data_is_the_structure_of_its_children() -> None:
    one = _Flat(*tree.flatten({"a": 1, "b": 2}))
    nested = _Flat(*tree.flatten({"a": [3, 4], "b": [5, 6]}))
    first, second = tree.transpose(tree.structure(one), tree.structure([0, 0]), nested)
    assert (first.leaves, second.leaves) == ([3, 5], [4, 6])


@pytest.mark.parametrize("flattened", [5, (3, None), ((1,),)])
def test_a_class_that_flattens_to_something_else_is_named(flattened: Any) -> None:
    class Bad:
        pass

    tree.register_pytree_node(Bad, lambda _: flattened, lambda *_: Bad())
    with pytest.raises(IllTyped, match="must return \\(children, aux_data\\)"):
        tree.flatten(Bad())


def test_a_named_tuple_may_have_a_structure_of_its_own_without_a_warning() -> None:
    class Pair(NamedTuple):
        first: int
        second: int

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.tree_util.register_pytree_node(
            Pair,
            lambda p: ((p.first,), p.second),
            lambda second, first: Pair(next(iter(first)), second),
        )
    assert tree_util.tree_leaves(Pair(1, 2)) == [1]
