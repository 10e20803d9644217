"""Exchange of values between the processes of a computation; each calls the same functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256

import numpy as np

from effax import tree
from effax.api.devices import devices, process_index
from effax.api.jit import jit
from effax.api.make_arrays import make_array_from_process_local_data
from effax.api.shard_map import shard_map
from effax.arrays.array import Array
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.device_calls import whole_value
from effax.arrays.mesh import Mesh
from effax.arrays.sharding import NamedSharding, PartitionSpec
from effax.ir.errors import BadArgument, ProcessesDiffer
from effax.lax import psum
from effax.lowering.xla import processes
from effax.tree import PyTree
from effax.tree.key_paths import keystr

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]

_AXIS = "processes"


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """Return the values of all processes, as NumPy arrays.

    Args:
        in_tree: a tree of arrays, of the same types in every process. An array over the devices of
            several processes is gathered to the whole, for which ``tiled`` must be set.
        tiled: whether the values are joined along their first axis; else they are stacked along a
            new one.

    Returns:
        Tree of arrays of shape ``(process_count, *shape)``, or joined.

    Raises:
        BadArgument: an array over several processes is not tiled.
        ProcessesDiffer: the types differ.
        ProcessLost: a process ended.

    >>> from effax.experimental.multihost_utils import process_allgather
    >>> process_allgather({"loss": jnp.ones(2)})
    {'loss': array([[1., 1.]], dtype=float32)}
    """
    return tree.map(partial(_gathered, tiled=tiled), in_tree)


def _gathered(x: object, tiled: bool) -> np.ndarray:
    if isinstance(x, DeviceArray) and not x.is_fully_addressable:
        if not tiled:
            raise BadArgument(
                "process_allgather of an array over the devices of several processes",
                expected="tiled=True, since there is one such array",
                found="tiled=False",
            )
        return whole_value(x)
    host = np.asarray(x)
    every = _bytes_of_all(host)
    found = np.stack([row.view(host.dtype).reshape(host.shape) for row in every])
    return found.reshape(-1, *host.shape[1:]) if tiled and host.ndim else found


def _bytes_of_all(host: np.ndarray) -> np.ndarray:
    """Return one row of bytes for each process; 64-bit numbers keep their bits."""
    own = np.frombuffer(host.tobytes(), np.uint8)[None]
    members = processes.group()
    if members is None:
        return own.copy()
    members.agree("gathers an array", f"{host.dtype}{list(host.shape)}")
    return whole_value(_spread(own))


def _spread(row: np.ndarray) -> DeviceArray:
    """Return the array of the rows of all processes, each on the first device of its process."""
    made = make_array_from_process_local_data(NamedSharding(_mesh(), PartitionSpec(_AXIS)), row)
    assert isinstance(made, DeviceArray), "an array of values"
    return made


def _mesh() -> Mesh:
    """Return the mesh of the first device of each process."""
    first = {d.process_index: d for d in reversed(devices())}
    grid = np.empty(len(first), object)
    grid[:] = [first[k] for k in sorted(first)]
    return Mesh(grid, [_AXIS])


@jit
def _summed(x: Array) -> Array:
    each, whole = PartitionSpec(_AXIS), PartitionSpec()

    def of_rows(y: Array) -> Array:
        return psum(y[0], _AXIS)

    return shard_map(of_rows, mesh=_mesh(), in_specs=each, out_specs=whole)(x)


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """Return the values of one process in all, as NumPy arrays.

    Args:
        in_tree: a tree of arrays, of the same types in every process.
        is_source: whether this process has the values; by default process 0 has.

    Raises:
        BadArgument: not exactly one process has the values.
        ProcessesDiffer: the types differ.
        ProcessLost: a process ended.

    >>> from effax.experimental.multihost_utils import broadcast_one_to_all
    >>> broadcast_one_to_all(jnp.arange(2))
    array([0, 1], dtype=int32)
    """
    members = processes.group()
    if members is None:
        return tree.map(np.array, in_tree)
    own = process_index() == 0 if is_source is None else bool(is_source)
    flags = members.exchange("broadcasts values", str(int(own)))
    if flags.count("1") != 1:
        raise BadArgument(
            "broadcast_one_to_all: one process has the values",
            expected="is_source=True in one process",
            found=f"in processes {[k for k, flag in enumerate(flags) if flag == '1']}",
        )
    return tree.map(lambda x: _broadcast(np.asarray(x), own, members), in_tree)


def _broadcast(host: np.ndarray, own: bool, members: processes.Group) -> np.ndarray:
    members.agree("broadcasts an array", f"{host.dtype}{list(host.shape)}")
    row = np.frombuffer(host.tobytes(), np.uint8)[None]
    # The other bytes are zero, so that the sum is the value, bit for bit.
    summed = _summed(_spread(row if own else np.zeros_like(row)))
    return np.array(summed).view(host.dtype).reshape(host.shape)


def sync_global_devices(name: str) -> None:
    """Wait until every process calls this with the same name.

    Raises:
        ProcessesDiffer: another process does something else, or has another name.
        ProcessLost: a process ended.

    >>> from effax.experimental.multihost_utils import sync_global_devices
    >>> sync_global_devices("after the first step")
    """
    members = processes.group()
    if members is not None:
        members.agree("waits for the others", str(name))


def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Raise an error in every process unless all have the same values.

    Args:
        in_tree: a tree of arrays.
        fail_message: what the error says first.

    Raises:
        ProcessesDiffer: the values differ, which is an AssertionError.
        ProcessLost: a process ended.

    >>> from effax.experimental.multihost_utils import assert_equal
    >>> assert_equal({"step": 3})
    """
    members = processes.group()
    if members is None:
        return
    try:
        shown = [_shown(keystr(path), x) for path, x in tree.leaves_with_path(in_tree)]
        members.agree("has a tree of values", "\n".join(shown))
    except ProcessesDiffer as error:
        if fail_message:
            error.what = f"{fail_message}: {error.what}"
        raise


def _shown(path: str, x: object) -> str:
    """Return a leaf as text: a hash decides, the first values help readers."""
    host = whole_value(x) if isinstance(x, DeviceArray) else np.asarray(x)
    digest = sha256(host.tobytes()).hexdigest()[:16]
    start = np.array2string(host.ravel()[:8], separator=", ")
    return f"{path}: {host.dtype}{list(host.shape)} {start} {digest}"


def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: object
) -> PyTree:
    """Return arrays over a mesh of the parts that each process has.

    Args:
        local_inputs: a tree of arrays: the part of this process, along the axes that are divided
            over processes.
        global_mesh: the mesh.
        pspecs: a specification, or a tree prefix of them.

    Raises IllTyped where a part does not divide over the devices of this process.

    >>> from effax.experimental.multihost_utils import host_local_array_to_global_array
    >>> mesh = effax.make_mesh((1,), ("x",))
    >>> host_local_array_to_global_array(np.ones(2, np.float32), mesh, effax.P("x"))
    Array([1., 1.], dtype=float32)
    """

    def joined(x: object, spec: PartitionSpec) -> Array:
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)

    return _with_specs(joined, local_inputs, pspecs)


def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: object
) -> PyTree:
    """Return the parts of this process, each as one array on its first device.

    Args:
        global_inputs: a tree of arrays over the mesh.
        global_mesh: the mesh.
        pspecs: a specification, or a tree prefix of them, which the arrays then have.

    >>> from effax.experimental.multihost_utils import global_array_to_host_local_array
    >>> mesh = effax.make_mesh((1,), ("x",))
    >>> global_array_to_host_local_array(jnp.ones(2), mesh, effax.P("x"))
    Array([1., 1.], dtype=float32)
    """

    def own_part(x: object, spec: PartitionSpec) -> Array:
        placed = asarray(x).placed(NamedSharding(global_mesh, spec))
        shards = placed.addressable_shards
        starts = [[s.start or 0 for s in shard.index] for shard in shards]
        least = np.min(starts, axis=0).astype(int)
        offsets = [np.subtract(start, least) for start in starts]
        shape = np.max(
            [o + shard.data.shape for o, shard in zip(offsets, shards, strict=True)], axis=0
        ).astype(int)
        made = np.empty(tuple(shape), placed.dtype)
        for offset, shard in zip(offsets, shards, strict=True):
            sizes = zip(offset, shard.data.shape, strict=True)
            made[tuple([slice(int(o), int(o) + n) for o, n in sizes])] = shard.data
        return asarray(made)

    return _with_specs(own_part, global_inputs, pspecs)


def _with_specs(fun: Callable[..., object], inputs: PyTree, pspecs: object) -> PyTree:
    specs = tree.broadcast(pspecs, inputs, is_leaf=lambda x: isinstance(x, PartitionSpec))
    return tree.map(fun, inputs, specs)
