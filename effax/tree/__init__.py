"""Trees of arrays: nested tuples, lists, dicts, named tuples, and registered classes."""

from __future__ import annotations

from effax.tree.functions import (
    PyTree,
    PyTreeDef,
    all,
    all_leaves,
    broadcast,
    broadcast_prefix,
    flatten,
    leaves,
    map,
    paths,
    reduce,
    reduce_associative,
    structure,
    transpose,
    unflatten,
)  # fmt: skip
from effax.tree.key_paths import flatten_with_path, leaves_with_path, map_with_path
from effax.tree.registry import (
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_static,
    static,
)

__all__ = [
    "PyTree", "PyTreeDef", "all", "all_leaves", "broadcast", "broadcast_prefix", "flatten",
    "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "paths",
    "reduce", "reduce_associative", "register_dataclass", "register_pytree_node",
    "register_pytree_node_class", "register_static", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip
