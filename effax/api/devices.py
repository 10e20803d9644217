"""The devices that programs run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from effax import tree
from effax.arrays.device_array import DeviceArray

if TYPE_CHECKING:
    from effax.lowering.xla import Device

T = TypeVar("T")


def devices() -> list[Device]:
    """The devices of the default backend."""
    from effax.lowering import xla

    return list(xla.devices())


def effects_barrier() -> None:
    """Wait until all that was begun is done to the world outside: prints, callbacks.

    A call returns when all of its callbacks have, so this only waits for calls of other threads.
    """
    from effax.lowering import xla

    xla.effects_barrier()


def block_until_ready(x: T) -> T:
    """Wait until every array of a tree is computed; gives the tree itself."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, DeviceArray):
            leaf.block_until_ready()
    return x
