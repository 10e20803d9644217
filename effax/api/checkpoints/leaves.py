"""Leaves of trees: their types, and the parts that this process saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from effax.api.checkpoints.index import Leaf
from effax.arrays.device_array import DeviceArray
from effax.arrays.exclusive import exclusively
from effax.arrays.placed_array import PlacedArray
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef
from effax.ir.dtypes import is_array_dtype, short_name
from effax.ir.errors import BadArgument
from effax.ir.types import ArrayType, Shape, array_type
from effax.lowering import xla
from effax.lowering.xla.backend import buffer_type
from effax.lowering.xla.buffers import in_buffer
from effax.tree import PyTreeDef
from effax.tree.key_paths import flatten_with_path, keystr

SCALARS: Final = (bool, int, float, complex, str)
"""The classes of Python scalars that are saved as text."""


class Own(NamedTuple):
    """A part that this process saves: its position in the whole, and its elements or words."""

    start: Shape
    elements: np.ndarray


class Taken(NamedTuple):
    """The leaves of a tree, and the parts of each that this process saves."""

    leaves: Sequence[Leaf]
    own: Sequence[Sequence[Own]]


def named_leaves(tree_: object, what: str) -> tuple[dict[str, object], PyTreeDef]:
    """Return the leaves of a tree by the expressions of their paths. Raises BadArgument."""
    found, treedef = flatten_with_path(tree_)
    leaves: dict[str, object] = {}
    for keys, leaf in found:
        path = keystr(keys)
        if path in leaves:
            raise BadArgument(f"{what}: two leaves have one path", "distinct paths", path)
        leaves[path] = leaf
    return leaves, treedef


def taken(tree_: object, first: bool, copy: bool) -> Taken:
    """Return the contents of a tree now, references included.

    Args:
        tree_: the tree.
        first: whether this process saves what is whole on one device of each process.
        copy: whether the parts share no memory with arrays.

    Raises:
        BadArgument: a leaf cannot be saved.
        RefError: a reference was consumed.
    """
    leaves, _ = named_leaves(tree_, "save")
    refs = [x for x in leaves.values() if isinstance(x, EagerRef)]

    def all_at_once() -> Taken:
        made = [_taken(path, x, first, copy) for path, x in leaves.items()]
        return Taken([leaf for leaf, _ in made], [own for _, own in made])

    return exclusively(refs, all_at_once)


def _taken(path: str, x: object, first: bool, copy: bool) -> tuple[Leaf, Sequence[Own]]:
    if type(x) in SCALARS:
        return Leaf(path, type(x).__name__, value=str(x)), ()
    if isinstance(x, PlacedRef):
        x.check_usable()
        assert x._buffer is not None
        x, copy = PlacedArray(x.contents, x._buffer), True
    if isinstance(x, PlacedArray):
        return leaf_of_type(path, x.type), _parts(x, first, copy)
    if isinstance(x, EagerRef):
        type_, value, copy = x.type.inner, x.memory(), True
    elif isinstance(x, DeviceArray):
        type_, value = x.type, x.numpy()
    elif isinstance(x, np.ndarray | np.generic) and is_array_dtype(x.dtype):
        value, copy = np.asarray(x), True
        type_ = array_type(value.shape, value.dtype)
    else:
        raise BadArgument(
            f"save: the leaf {path} cannot be saved",
            expected="an array, a reference, a number or a string",
            found=f"{type(x).__name__}: {x!r:.60}",
            remedy="save outside of traced functions, and leave out what is no array",
        )
    elements = in_buffer(value)
    elements = np.array(elements) if copy else elements
    return leaf_of_type(path, type_), [Own((0,) * elements.ndim, elements)] if first else []


def leaf_of_type(path: str, type_: ArrayType) -> Leaf:
    """Return the leaf of an array."""
    return Leaf(path, short_name(type_.dtype), type_.shape, type_.weak)


def _parts(x: PlacedArray, first: bool, copy: bool) -> list[Own]:
    """Return the parts of which this process has the first copy: copies, or views.

    Of an array on devices of one process, each process has its own: the first one's is saved.
    """
    place = x.placed_type.place
    if place.is_local and not first:
        return []
    indices, copies = place.indices(buffer_type(x.type).shape), place.replica_ids()
    views = [(k, xla.read_part(x.parts, place, k)) for k in place.local if copies[k] == 0]
    return [
        Own(tuple([s.start for s in indices[k]]), np.array(view) if copy else view)
        for k, view in views
    ]
