"""Pytree utilities under JAX's longer names; see ``effax.tree``."""

from __future__ import annotations

from effax.tree.functions import (
    PyTree,
    PyTreeDef,
    all_leaves,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)  # fmt: skip
from effax.tree.functions import all as tree_all
from effax.tree.functions import broadcast as tree_broadcast
from effax.tree.functions import flatten as tree_flatten
from effax.tree.functions import leaves as tree_leaves
from effax.tree.functions import map as tree_map
from effax.tree.functions import reduce as tree_reduce
from effax.tree.functions import reduce_associative as tree_reduce_associative
from effax.tree.functions import structure as tree_structure
from effax.tree.functions import transpose as tree_transpose
from effax.tree.functions import unflatten as tree_unflatten
from effax.tree.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    flatten_one_level,
    flatten_one_level_with_keys,
    keystr,
)  # fmt: skip
from effax.tree.key_paths import flatten_with_path as tree_flatten_with_path
from effax.tree.key_paths import leaves_with_path as tree_leaves_with_path
from effax.tree.key_paths import map_with_path as tree_map_with_path
from effax.tree.registry import (
    Partial,
    is_tree_node,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)  # fmt: skip

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTree",
    "PyTreeDef", "SequenceKey", "all_leaves", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative",
    "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf",
    "treedef_tuple",
]  # fmt: skip
