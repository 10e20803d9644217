"""JAX's longer names for ``effax.tree``, registration of classes, and callables that are trees."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from effax.tree import (
    PyTree,
    PyTreeDef,
    all_leaves,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_static,
)
from effax.tree import all as tree_all
from effax.tree import flatten as tree_flatten
from effax.tree import leaves as tree_leaves
from effax.tree import map as tree_map
from effax.tree import reduce as tree_reduce
from effax.tree import structure as tree_structure
from effax.tree import transpose as tree_transpose
from effax.tree import unflatten as tree_unflatten
from effax.treepath import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
)
from effax.treepath import flatten_with_path as tree_flatten_with_path
from effax.treepath import leaves_with_path as tree_leaves_with_path
from effax.treepath import map_with_path as tree_map_with_path

R = TypeVar("R")

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTree",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_static",
    "tree_all",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]


class Partial(partial[R]):
    """A ``functools.partial`` that is a tree: its arguments are children, its function is not.

    So it passes through ``jit`` and ``vmap``; functions are compared by identity.
    """


def _flatten_partial(f: Partial[object]) -> tuple[tuple[object, ...], object]:
    return (f.args, f.keywords), f.func


def _unflatten_partial(func: PyTree, children: Iterable[PyTree]) -> Partial[object]:
    args, keywords = children
    return Partial(func, *args, **keywords)


register_pytree_node(Partial, _flatten_partial, _unflatten_partial)
