"""The devices that programs run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from effax import tree
from effax.array import DeviceArray

if TYPE_CHECKING:
    from effax.lowering.xla import Device

T = TypeVar("T")


def devices() -> list[Device]:
    """The devices of the default backend."""
    from effax.lowering import xla

    return list(xla.devices())


def block_until_ready(x: T) -> T:
    """Wait until every array of a tree is computed; gives the tree itself."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, DeviceArray):
            leaf.block_until_ready()
    return x
