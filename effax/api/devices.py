"""Devices, transfers to and from them, and waiting for computations on them."""

from __future__ import annotations

import os
import platform
import sys
from typing import TypeVar

import numpy as np

from effax import tree
from effax.arrays.array import Array
from effax.arrays.config import allowed
from effax.arrays.conversion import from_numpy
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed import placement
from effax.arrays.ref import Ref
from effax.arrays.sharding import Sharding
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.lowering.xla import Device
from effax.tree import PyTree
from effax.version import __version__ as package_version

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


def local_devices(process_index: int | None = None, *, backend: str | None = None) -> list[Device]:
    """Return the devices of this process, or of the one of a number. Raises as :func:`devices`."""
    from effax.lowering import xla

    here = xla.this_process() if process_index is None else process_index
    return [d for d in devices(backend) if d.process_index == here]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices. Raises as :func:`devices`."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process. Raises as :func:`devices`."""
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """Return the platform of the devices: ``cpu``."""
    return devices()[0].platform


def process_index(backend: str | None = None) -> int:
    """Return the number of this process, from 0 on. Raises as :func:`devices`."""
    from effax.lowering import xla

    devices(backend)
    return xla.this_process()


def process_count(backend: str | None = None) -> int:
    """Return the number of processes. Raises as :func:`devices`."""
    return len({d.process_index for d in devices(backend)})


def device_put(
    x: PyTree,
    device: PyTree = None,
    *,
    src: PyTree = None,
    donate: bool | PyTree = False,
    may_alias: bool | PyTree | None = None,
) -> PyTree:
    """Return a tree of arrays with the leaves of ``x``; of symbols, itself.

    Args:
        x: a tree of arrays and numbers.
        device: None, which changes nothing; a device, or a sharding, which the array then has; or a
            tree prefix of these.
        src: ignored: an array knows where it is.
        donate: whether the memory of arrays moves to the results; a later use of them is an error.
        may_alias: False for memory that no array of ``x`` shares.

    Raises:
        BadArgument: ``device`` is no device.
        IllTyped: a leaf is a reference, or does not convert to an array; or a sharding does not
            divide it.

    >>> effax.device_put({"w": np.ones(2)}, effax.devices()[0])
    {'w': Array([1., 1.], dtype=float32)}
    """
    del src
    leaves, treedef = tree.flatten(x)
    places = _along(device, x, len(leaves))
    donated = [bool(d) for d in _along(donate, x, len(leaves))]
    aliased = [a is not False for a in _along(may_alias, x, len(leaves))]
    if any(
        d and a is True for d, a in zip(donated, _along(may_alias, x, len(leaves)), strict=True)
    ):
        raise BadArgument(
            "device_put: may_alias and donate cannot be True at the same time",
            expected="one of them",
            found="both",
        )
    shardings = [placement(place, "device_put") for place in places]
    made = map(_put, leaves, shardings, donated, aliased)
    return tree.unflatten(treedef, list(made))


def _along(prefix: PyTree, x: PyTree, n: int) -> list[object]:
    """Return the entry of a tree prefix for each leaf."""
    if prefix is None or not isinstance(prefix, tuple | list | dict):
        return [prefix] * n
    return tree.leaves(tree.broadcast(prefix, x, is_leaf=is_none), is_leaf=is_none)


def is_none(x: object) -> bool:
    """Return whether a node of a tree is None: a leaf of prefixes."""
    return x is None


def _put(leaf: object, sharding: Sharding | None, donated: bool, aliased: bool) -> Array:
    if isinstance(leaf, Ref):
        raise IllTyped("device_put of a reference", "arrays", str(leaf.type), "read it: `ref[...]`")
    if sharding is not None and isinstance(leaf, np.ndarray) and _is_as_stored(leaf):
        sharding.shard_shape(leaf.shape)
        if sharding.placement(leaf.ndim) is not None:
            # The devices copy it.
            return from_numpy(leaf.view()).placed(sharding)
    made = asarray(leaf)
    if sharding is not None:
        sharding.shard_shape(made.shape)
    if not isinstance(made, DeviceArray):
        return made.placed(sharding)
    if made is leaf and (donated or not aliased):
        made = DeviceArray(np.array(made.numpy()), made.type)
        if donated and isinstance(leaf, DeviceArray):
            leaf.delete()
    return made.placed(sharding)


def _is_as_stored(x: np.ndarray) -> bool:
    """Return whether an array of this one has its elements, in their order in memory."""
    plain = type(x) is np.ndarray and x.dtype.kind in "biufc" and x.flags.carray
    return plain and allowed(x.dtype, of_value=True) == x.dtype


def copy_to_host_async(x: T) -> T:
    """Call ``copy_to_host_async()`` of the leaves that have it, and return the tree.

    The memory of arrays is the host's, so theirs copies nothing.
    """
    for leaf in tree.leaves(x):
        copy = getattr(leaf, "copy_to_host_async", None)
        if copy is not None:
            copy()
    return x


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of the processes, ``[0]`` for one. Raises as :func:`devices`."""
    return list(range(process_count(backend)))


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of the library, jaxlib, NumPy and Python, the devices and the platform.

    Args:
        return_string: whether to return the text instead.

    >>> print(effax.print_environment_info(return_string=True).splitlines()[0])
    effax:  0.1.0
    """
    from importlib.metadata import version

    found = devices()
    lines = [
        f"effax:  {package_version}",
        f"jaxlib: {version('jaxlib')}",
        f"numpy:  {np.__version__}",
        f"python: {' '.join(sys.version.split())}",
        f"device info: {found[0].device_kind}-{len(found)}, {local_device_count()} local devices",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
        *[f"{k}={v}" for k, v in os.environ.items() if k.startswith(("JAX_", "XLA_"))],
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    sys.stdout.write(text + "\n")
    return None


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
