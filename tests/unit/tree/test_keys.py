"""Keys that classes name, texts of paths, and prefixes."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable

import pytest

import effax
import effax.numpy as jnp
from effax import tree, tree_util
from effax.ir.errors import BadArgument
from effax.tree import PyTree
from effax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey


@tree_util.register_pytree_with_keys_class
class Layer:
    def __init__(self, w: PyTree, b: PyTree) -> None:
        self.w, self.b = w, b

    def tree_flatten_with_keys(self) -> tuple[Iterable[tuple[object, object]], object]:
        return ((GetAttrKey("w"), self.w), (".bias", self.b)), "aux"

    @classmethod
    def tree_unflatten(cls, aux_data: object, children: Iterable[PyTree]) -> Layer:
        assert aux_data == "aux"
        return cls(*children)


def test_keys_of_a_class_are_in_paths() -> None:
    found, treedef = tree.flatten_with_path({"a": Layer(1, (2,))})
    assert [(path, leaf) for path, leaf in found] == [
        ((DictKey("a"), GetAttrKey("w")), 1),
        ((DictKey("a"), ".bias", SequenceKey(0)), 2),
    ]
    assert [tree_util.keystr(path) for path, _ in found] == ["['a'].w", "['a'].bias[0]"]
    assert tree.paths(Layer(1, 2)) == [".w", ".bias"]
    assert tree.unflatten(treedef, [3, 4])["a"].w == 3


def test_classes_with_keys_pass_through_transformations() -> None:
    def loss(layer: Layer) -> effax.Array:
        return jnp.sum(layer.w * layer.b)

    for gradient in (effax.grad(loss), effax.jit(effax.grad(loss))):
        found = gradient(Layer(jnp.float32(2.0), jnp.float32(3.0)))
        assert (found.w, found.b) == (3.0, 2.0)


def test_simple_texts_of_paths() -> None:
    keys = (DictKey("a"), SequenceKey(0), GetAttrKey("x"), FlattenedIndexKey(1))
    assert tree_util.keystr(keys) == "['a'][0].x[<flat index 1>]"
    assert tree_util.keystr(keys, simple=True, separator="/") == "a/0/x/1"


def test_leaves_and_paths_in_the_namespace_of_trees() -> None:
    assert tree.leaves_with_path([3]) == [((SequenceKey(0),), 3)]
    assert tree.map_with_path(lambda path, x: (tree_util.keystr(path), x), {"a": 1}) == {
        "a": ("['a']", 1)
    }


def test_broadcast_repeats_the_leaves_of_a_prefix() -> None:
    full = {"a": (1, [2, None]), "b": 3}
    assert tree.broadcast({"a": 7, "b": 8}, full) == {"a": (7, [7, None]), "b": 8}
    pair = tree_util.tree_broadcast((1, 2), [0, 0], is_leaf=lambda x: isinstance(x, tuple))
    assert pair == [(1, 2), (1, 2)]
    with pytest.raises(BadArgument, match="structure"):
        tree.broadcast([1, 2], [3])


def test_parts_of_structures() -> None:
    parts = [tree.structure(x) for x in (1, {"a": 2})]
    assert list(map(tree_util.treedef_is_leaf, parts)) == [True, False]
    pair = tree_util.treedef_tuple(parts)
    assert pair == tree.structure((1, {"a": 2}))
    assert tree_util.treedef_children(pair) == parts


def test_associative_reductions_combine_neighbours() -> None:
    for n in range(1, 9):
        assert tree.reduce_associative(operator.add, list("abcdefgh")[:n]) == "abcdefgh"[:n]
    assert tree.reduce_associative(max, {}, identity=0) == 0
    with pytest.raises(BadArgument, match="identity"):
        tree.reduce_associative(max, [])


def test_transpose_takes_names() -> None:
    outer, inner = tree.structure([0, 0]), tree.structure((0, 0))
    found = tree.transpose(
        outer_treedef=outer, inner_treedef=inner, pytree_to_transpose=[(1, 2), (3, 4)]
    )
    assert found == ([1, 3], [2, 4])


def test_reductions_take_leaves() -> None:
    def is_pair(x: object) -> bool:
        return isinstance(x, tuple)

    assert tree.reduce(lambda n, x: n + len(x), [(1, 2), (3,)], 0, is_leaf=is_pair) == 3
    assert tree.all([(0,), (1,)], is_leaf=is_pair)
    assert not tree.all([(), (1,)], is_leaf=is_pair)


def test_predicates_of_leaves_take_paths() -> None:
    given = {"a": ([3], None), "b": (4, {"c": 5})}

    def ends(path: tree_util.KeyPath, _: object) -> bool:
        return path[-1:] == (SequenceKey(1),)

    found = tree.leaves_with_path(given, ends, is_leaf_takes_path=True)
    keys = [(tree_util.keystr(path, simple=True), leaf) for path, leaf in found]
    assert keys == [("a00", 3), ("a1", None), ("b0", 4), ("b1", {"c": 5})]
    flat, treedef = tree.flatten_with_path(given, ends, is_leaf_takes_path=True)
    assert tree.unflatten(treedef, [leaf for _, leaf in flat]) == given

    def joined(path: tree_util.KeyPath, *leaves: object) -> tuple[object, ...]:
        return len(path), *leaves

    mapped = tree.map_with_path(joined, given, given, is_leaf=ends, is_leaf_takes_path=True)
    assert mapped["b"][1] == (2, {"c": 5}, {"c": 5})


def test_one_level_of_a_tree() -> None:
    assert tree_util.flatten_one_level({"b": [1], "a": None}) == ([None, [1]], ("a", "b"))
    assert tree_util.flatten_one_level(defaultdict(int, b=1)) == ([1], (int, ("b",)))
    keyed, aux = tree_util.flatten_one_level_with_keys(Layer(1, (2,)))
    assert (keyed, aux) == ([(GetAttrKey("w"), 1), (".bias", (2,))], "aux")
    assert tree_util.flatten_one_level_with_keys(None) == ([], None)
    with pytest.raises(BadArgument, match="a leaf"):
        tree_util.flatten_one_level(1.0)
    nodes = (tuple, type(None), Layer, int, effax.Array)
    assert [tree_util.is_tree_node(x) for x in nodes] == [True, True, True, False, False]


def test_keys_of_different_kinds_have_different_hashes() -> None:
    assert hash(FlattenedIndexKey(1)) == hash(FlattenedIndexKey(1)) != hash(SequenceKey(1))
