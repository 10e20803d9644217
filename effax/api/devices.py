"""Devices, and waiting for computations on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from effax import tree
from effax.arrays.device_array import DeviceArray

if TYPE_CHECKING:
    from effax.lowering.xla import Device

T = TypeVar("T")


def devices() -> list[Device]:
    """Return the devices of the default backend."""
    from effax.lowering import xla

    return list(xla.devices())


def effects_barrier() -> None:
    """Wait until all started side effects have finished: prints, callbacks.

    A call returns after all of its callbacks, so this only waits for calls of other threads.
    """
    from effax.lowering import xla

    xla.effects_barrier()


def block_until_ready(x: T) -> T:
    """Wait until every array of a tree is computed; return the tree itself."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, DeviceArray):
            leaf.block_until_ready()
    return x
