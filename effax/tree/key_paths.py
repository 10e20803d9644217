"""Paths of keys to the leaves of trees, and functions of leaves and their paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import optree

from effax.tree import functions as tree
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
    tree_: object, is_leaf: Callable[[object], bool] | None = None
) -> tuple[list[tuple[KeyPath, PyTree]], PyTreeDef]:
    """Return the leaves of a tree, each with its path, and the structure."""
    leaves, treedef = tree.flatten(tree_, is_leaf)
    paths = [tuple(map(_key, accessor)) for accessor in tree.accessors(tree_, is_leaf)]
    return list(zip(paths, leaves, strict=True)), treedef


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
    tree_: object, is_leaf: Callable[[object], bool] | None = None
) -> list[tuple[KeyPath, PyTree]]:
    """Return the leaves of a tree, each with its path."""
    return flatten_with_path(tree_, is_leaf)[0]


def map_with_path(
    f: Callable[..., object],
    tree_: object,
    *rest: object,
    is_leaf: Callable[[object], bool] | None = None,
) -> PyTree:
    """Map ``f(path, leaf, *leaves of the further trees)`` over the leaves, as ``tree.map``."""
    paths = [path for path, _ in leaves_with_path(tree_, is_leaf)]
    walk = iter(paths)
    return tree.map(lambda *leaves: f(next(walk), *leaves), tree_, *rest, is_leaf=is_leaf)
