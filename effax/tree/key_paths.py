"""Paths of keys to the leaves of trees, and functions of leaves and their paths."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import cast

import optree

from effax.ir.errors import BadArgument
from effax.lazy.dataclasses import dataclass
from effax.tree import functions as trees
from effax.tree.functions import PyTree, PyTreeDef
from effax.tree.registry import KeyedEntry


@dataclass(frozen=True)
class DictKey:
    """An entry of a dict."""

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """An element of a tuple or a list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple or of a registered dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A child of an instance of a registered class."""

    key: int

    def __hash__(self) -> int:
        # Another one than that of the element of a sequence.
        return hash((FlattenedIndexKey, self.key))

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = DictKey | SequenceKey | GetAttrKey | FlattenedIndexKey
KeyPath = tuple[KeyEntry, ...]
"""The keys from the root of a tree to a leaf."""


def keystr(keys: Sequence[object], *, simple: bool = False, separator: str = "") -> str:
    """Return the Python expression of a path.

    Args:
        keys: the keys, of these classes or of others.
        simple: whether a key is shown without brackets and dots.
        separator: the text between keys.

    >>> path, _ = jax.tree_util.tree_leaves_with_path({"w": [1]})[0]
    >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][0]", 'w/0')
    """
    return separator.join(map(_simple if simple else str, keys))


def _simple(key: object) -> str:
    if isinstance(key, DictKey | FlattenedIndexKey):
        return str(key.key)
    if isinstance(key, SequenceKey):
        return str(key.idx)
    return key.name if isinstance(key, GetAttrKey) else str(key)


def flatten_with_path(
    tree: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> tuple[list[tuple[KeyPath, PyTree]], PyTreeDef]:
    """Return the leaves of a tree, each with its path, and the structure.

    Args:
        tree: the tree.
        is_leaf: returns whether a subtree is a leaf.
        is_leaf_takes_path: whether ``is_leaf`` takes the path of a subtree before it.

    >>> nested = [1, {"a": [2, 3]}]
    >>> shallow = lambda path, _: len(path) == 2
    >>> leaves, _ = jax.tree.flatten_with_path(nested, shallow, is_leaf_takes_path=True)
    >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
    [('[0]', 1), ("[1]['a']", [2, 3])]
    """
    if is_leaf is not None and is_leaf_takes_path:
        ends = _ends(tree, is_leaf)
        leaves, treedef = trees.flatten(tree, _in_order(ends))
        accessors = trees.accessors(tree, _in_order(ends))
    else:
        leaves, treedef = trees.flatten(tree, is_leaf)
        accessors = trees.accessors(tree, is_leaf)
    paths = [tuple(map(_key, accessor)) for accessor in accessors]
    return list(zip(paths, leaves, strict=True)), treedef


def _ends(tree: object, is_leaf: Callable[[KeyPath, object], bool]) -> list[bool]:
    """Return for each node of a tree, parents first, whether it is a leaf by ``is_leaf``."""
    ends: list[bool] = []
    waiting: list[tuple[KeyPath, object]] = [((), tree)]
    while waiting:
        path, node = waiting.pop()
        ends.append(bool(is_leaf(path, node)))
        if not ends[-1] and not trees.all_leaves([node]):
            children = flatten_one_level_with_keys(node)[0]
            waiting += [((*path, key), child) for key, child in reversed(children)]
    return ends


def _in_order(ends: Sequence[bool]) -> Callable[[object], bool]:
    """Return the predicate of leaves that returns these answers, call after call."""
    answers = iter(ends)
    return lambda _: next(answers)


def flatten_one_level(tree: object) -> tuple[list[PyTree], PyTree]:
    """Return the children of the root of a tree, and its auxiliary data.

    Raises:
        BadArgument: the tree is a leaf.

    >>> jax.tree_util.flatten_one_level({"b": [1, 2], "a": 3})
    ([3, [1, 2]], ('a', 'b'))
    """
    try:
        children, found, *_ = optree.tree_flatten_one_level(
            cast("PyTree", tree), namespace=trees.NAMESPACE
        )
    except ValueError:
        raise BadArgument(
            "flatten_one_level takes an inner node of a tree", found=f"a leaf: {tree!r:.60}"
        ) from None
    data = cast("PyTree", found)
    if type(tree) in (dict, OrderedDict):
        return list(children), tuple(data)
    if type(tree) is defaultdict:
        return list(children), (data[0], tuple(data[1]))
    return list(children), data


def flatten_one_level_with_keys(tree: object) -> tuple[list[tuple[KeyEntry, PyTree]], PyTree]:
    """Return the children of the root of a tree, each with its key, and its auxiliary data.

    Raises:
        BadArgument: the tree is a leaf.

    >>> jax.tree_util.flatten_one_level_with_keys([5, (6, 7)])[0]
    [(SequenceKey(idx=0), 5), (SequenceKey(idx=1), (6, 7))]
    """
    children, data = flatten_one_level(tree)
    keys = [_key(path[0]) for path in trees.accessors(tree, lambda x: x is not tree)]
    return list(zip(keys, children, strict=True)), data


def _key(entry: optree.PyTreeEntry) -> KeyEntry:
    if isinstance(entry, optree.NamedTupleEntry):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.SequenceEntry):
        return SequenceKey(entry.index)
    if isinstance(entry, optree.MappingEntry):
        return DictKey(entry.key)
    if isinstance(entry, optree.GetAttrEntry):
        return GetAttrKey(entry.name)
    if isinstance(entry, KeyedEntry):
        return cast("KeyEntry", entry.entry)
    return FlattenedIndexKey(entry.entry)


def leaves_with_path(
    tree: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> list[tuple[KeyPath, PyTree]]:
    """Return the leaves of a tree, each with its path, as ``flatten_with_path``."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Map ``f(path, leaf, *leaves of the further trees)`` over the leaves, as ``tree.map``.

    ``is_leaf`` and ``is_leaf_takes_path`` are those of ``flatten_with_path``.
    """
    found, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = trees.columns(treedef, rest)
    results = [f(*leaf, *others) for leaf, *others in zip(found, *columns, strict=True)]
    return trees.unflatten(treedef, results)
