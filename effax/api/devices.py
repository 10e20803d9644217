"""Devices, transfers to and from them, and waiting for computations on them."""

from __future__ import annotations

from typing import TypeVar

from effax import tree
from effax.arrays.array import Array
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.lowering.xla import Device
from effax.tree import PyTree

T = TypeVar("T")


class NoBackend(EffaxError, RuntimeError):
    """No device of the named platform exists."""


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform; None is the default platform.

    Raises:
        NoBackend: the platform has none.
    """
    from effax.lowering import xla

    found = list(xla.devices())
    if backend is not None and backend != found[0].platform:
        raise NoBackend(
            "the platform has no device", expected=repr(found[0].platform), found=repr(backend)
        )
    return found


def local_devices(*, backend: str | None = None) -> list[Device]:
    """Return the devices of this process, which are all there are. Raises as :func:`devices`."""
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Return the number of devices. Raises as :func:`devices`."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process. Raises as :func:`devices`."""
    return len(devices(backend))


def default_backend() -> str:
    """Return the platform of the devices: ``cpu``."""
    return devices()[0].platform


def process_index(backend: str | None = None) -> int:
    """Return 0: computations use the devices of one process. Raises as :func:`devices`."""
    devices(backend)
    return 0


def process_count(backend: str | None = None) -> int:
    """Return 1: computations use the devices of one process. Raises as :func:`devices`."""
    devices(backend)
    return 1


def device_put(x: PyTree, device: Device | None = None) -> PyTree:
    """Return a tree of arrays with the leaves of ``x``; of symbols, itself.

    Args:
        x: a tree of arrays and numbers.
        device: None or the first device, where all arrays are.

    Raises:
        BadArgument: ``device`` is another one, or a sharding.
        IllTyped: a leaf is a reference, or does not convert to an array.

    >>> effax.device_put({"w": np.ones(2)}, effax.devices()[0])
    {'w': Array([1., 1.], dtype=float32)}
    """
    if device is not None and device != devices()[0]:
        raise BadArgument(
            "device_put places arrays on the first device only",
            expected=f"None or {devices()[0]}",
            found=f"{device!r:.80}",
            remedy="`shard_map` distributes a computation",
        )
    return tree.map(_put, x)


def _put(leaf: object) -> Array:
    if isinstance(leaf, Ref):
        raise IllTyped("device_put of a reference", "arrays", str(leaf.type), "read it: `ref[...]`")
    return asarray(leaf)


def device_get(x: PyTree) -> PyTree:
    """Return a tree with NumPy arrays, read-only ones, instead of arrays; other leaves are kept.

    Raises:
        ConcretizationError: a leaf is a symbol without a value.

    >>> effax.device_get([jnp.arange(2), 1.5])
    [array([0, 1], dtype=int32), 1.5]
    """
    return tree.map(lambda leaf: leaf.numpy() if isinstance(leaf, Array) else leaf, x)


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
