"""The XLA client of the process, created on first use, and the objects interned with it."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from math import ceil
from threading import RLock
from typing import TYPE_CHECKING, Final, Protocol, cast, final, runtime_checkable

from effax.ir.dtypes import (
    BOOL,
    FLOAT0,
    UINT8,
    UINT32,
    DType,
    as_key_dtype,
    unsigned_of_subbyte,
)
from effax.ir.errors import BadArgument, LoweringError, ProcessError
from effax.ir.types import ArrayType, Shape, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering.xla.dlpack import TYPE_CODES, memory_of
from effax.lowering.xla.processes import Group, group, is_launched, joined_group
from effax.lowering.xla.quiet import quieten

if TYPE_CHECKING:
    from jaxlib import _jax

OLDEST: Final = (0, 10, 2)
"""The oldest supported jaxlib."""

_FIRST_OF_OTHER_LIBRARIES: Final = 256
"""The first NumPy type number of dtypes that other libraries register (NPY_USERDEF)."""


@final
class Aval:
    """The type of an array in jaxlib's protocol. Interned: one object for each ArrayType."""

    __slots__ = ("array_type", "dtype", "has_buffer_protocol", "memory_at", "shape", "weak_type")

    shape: Shape
    dtype: DType
    weak_type: bool
    array_type: ArrayType
    memory_at: Callable[[int], memoryview]
    has_buffer_protocol: bool

    def __repr__(self) -> str:
        return f"Aval({self.array_type})"


@runtime_checkable
class Device(Protocol):
    """A device as jaxlib describes it."""

    @property
    def id(self) -> int:
        """Its number among the devices of its platform."""
        ...

    @property
    def platform(self) -> str:
        """Its platform, such as ``cpu``."""
        ...

    @property
    def device_kind(self) -> str:
        """Its model, as the platform reports it."""
        ...

    @property
    def process_index(self) -> int:
        """The number of the process that uses it."""
        ...


class Buffer(Protocol):
    """An array in a device's memory: jaxlib's object, opaque outside this package."""

    @property
    def aval(self) -> Aval:
        """Its interned type: compare by identity."""
        ...

    @property
    def _sharding(self) -> object: ...

    def __buffer__(self, flags: int, /) -> memoryview:
        """Python's buffer protocol, for the dtypes that have it."""
        ...

    def block_until_ready(self) -> object:
        """Wait until it is written."""
        ...

    def is_ready(self) -> bool:
        """Return whether it is written."""
        ...

    def delete(self) -> None:
        """Free its memory."""
        ...

    def is_deleted(self) -> bool:
        """Return whether its memory is freed or donated."""
        ...


_DevicePut = Callable[
    [
        Aval,
        "_jax.SingleDeviceSharding",
        Sequence[object],
        Sequence["_jax.Device"],
        bool,
        bool,
        "_jax.HostBufferSemantics",
        bool,
    ],
    Buffer,
]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    """The client, its devices, and tables of interned objects by type.

    ``devices`` are those of all processes, ``placement`` is this one's first, which runs programs.

    ``flatten`` returns the leaves of a tree of None, tuples, lists and dicts (any other value is a
    leaf), and its structure.

    The tables need no lock: an entry depends on its key alone, and of two entries that threads
    create at once, the first to be stored is kept.
    """

    client: _jax.Client
    devices: tuple[_jax.Device, ...]
    placement: Sequence[_jax.Device]
    device_list: _jax.DeviceList
    sharding: _jax.SingleDeviceSharding
    zero_copy: _jax.HostBufferSemantics
    device_put: _DevicePut
    wait: Callable[[Sequence[Buffer]], None]
    capsule: Callable[[Buffer], object]
    flatten: Callable[[object], tuple[list[object], Hashable]]
    asynchronous: bool
    avals: dict[tuple[Shape, DType, bool], Aval] = field(default_factory=dict)
    handlers: dict[Aval, _jax.ResultHandler] = field(default_factory=dict)


@final
class _Process:
    """The state of the process: XLA supports one client."""

    __slots__ = ("backend", "lock", "num_devices")

    def __init__(self) -> None:
        self.backend: Backend | None = None
        self.num_devices: int | None = None
        self.lock: Final = RLock()


_process: Final = _Process()


def backend() -> Backend:
    """Return the backend; start it with the default options if it is not running."""
    return _process.backend or start()


def start(*, asynchronous: bool | None = None, num_devices: int | None = None) -> Backend:
    """Start XLA. Required only for options other than the defaults, before its first use.

    Args:
        asynchronous: whether a call may return before it is done; by default it may not. If it
            may, NumPy must not write into memory that a call may still be reading (see
            :func:`effax.lowering.xla.raw_view`).
        num_devices: the number of CPU devices; by default that of XLA_FLAGS, or one.

    Raises:
        BadArgument: it is running with other options.
        LoweringError: jaxlib is not installed, or older than supported.
        ProcessError: this process is one of several, and not all of them start XLA.
    """
    with _process.lock:
        running = _process.backend
        if running is None:
            running = _process.backend = _connect(bool(asynchronous), num_devices)
    own = running.client.local_devices()
    has = {"asynchronous": running.asynchronous, "num_devices": len(own)}
    wanted = {"asynchronous": asynchronous, "num_devices": num_devices}
    if any(option is not None and option != has[name] for name, option in wanted.items()):
        raise BadArgument(
            "XLA is already running with other options",
            expected=str(has),
            found=str(wanted),
            remedy="call start before the first array or compilation",
        )
    return running


def device_list(chosen: tuple[Device, ...]) -> _jax.DeviceList:
    """Return devices as jaxlib's list."""
    from jaxlib import _jax

    return _jax.DeviceList(cast("tuple[_jax.Device, ...]", chosen))


def is_running() -> bool:
    """Return whether XLA has started, which fixes the devices and the processes."""
    return _process.backend is not None


def first_device() -> Device:
    """Return the device of arrays that are placed on no other: this process's first one."""
    return backend().placement[0]


def number_of_processes() -> int:
    """Return the number of processes that run one program, without a start of XLA."""
    members = joined_group()
    return 1 if members is None else members.options.size


def this_process() -> int:
    """Return the number of this process."""
    return backend().client.process_index()


def spanning(devices: tuple[Device, ...]) -> Group | None:
    """Return the group of processes, if devices are of several; else None.

    Raises ProcessError where none of the devices is of this process: XLA would not notice.
    """
    here = this_process()
    others = [d for d in devices if d.process_index != here]
    if others and len(others) == len(devices):
        raise ProcessError(
            "none of the devices of an array or a program is of this process",
            expected=f"a device of process {here} among them",
            found=f"devices {[d.id for d in devices]}",
            remedy="use a mesh of `effax.devices()`, or of `effax.local_devices()`",
        )
    return group() if others else None


def processes_of(devices: tuple[Device, ...]) -> list[int]:
    """Return the numbers of the processes that have devices."""
    return sorted({d.process_index for d in devices})


def own_devices() -> tuple[Device, ...]:
    """Return the devices of this process."""
    return tuple(backend().client.local_devices())


def set_num_devices(num_devices: int) -> None:
    """Set the number of CPU devices, before XLA starts. Raises BadArgument where it is running."""
    with _process.lock:
        if _process.backend is not None:
            start(num_devices=num_devices)
        _process.num_devices = num_devices


def _configured() -> int | None:
    """Return the number of CPU devices that the user or the environment variable sets."""
    if _process.num_devices is not None:
        return _process.num_devices
    given = os.environ.get("JAX_NUM_CPU_DEVICES")
    return int(given) if given is not None and int(given) > 0 else None


_FORCED: Final = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def number_of_devices() -> int:
    """Return the number of devices, without a start of XLA."""
    running = _process.backend
    if running is None and (group() is not None or is_launched()):
        running = start()
    if running is not None:
        return len(running.devices)
    forced = _FORCED.search(os.environ.get("XLA_FLAGS", ""))
    return _configured() or (int(forced[1]) if forced else 1)


EFFORTS: Final = ("optimization_level", "memory_fitting_level")
"""The options of a compilation that are levels of effort, and no flags of XLA."""


def devices() -> tuple[Device, ...]:
    """Return the devices of all processes; arrays are on this process's first one by default."""
    return backend().devices


def platform_version() -> str:
    """Return the version of the platform's plugin, as text."""
    return backend().client.platform_version


def buffer_type(type_: ArrayType) -> ArrayType:
    """Return the type of the buffer of an array.

    Booleans represent ``float0``, words a key, and bytes numbers that are narrower.
    """
    dtype = type_.dtype
    if dtype.kind != "V":
        return type_
    if unsigned_of_subbyte(dtype) is not None:
        return array_type(type_.shape, UINT8)
    key = as_key_dtype(dtype)
    if key is not None:
        return array_type((*type_.shape, *key.words), UINT32)
    return array_type(type_.shape, BOOL) if dtype == FLOAT0 else type_


def aval_of(type_: ArrayType) -> Aval:
    """Return the aval of an array type."""
    type_ = buffer_type(type_)
    key = (type_.shape, type_.dtype, type_.weak)
    return backend().avals.get(key) or new_aval(type_)


def new_aval(type_: ArrayType) -> Aval:
    """Make and store the aval of a type that has none yet.

    Raises:
        LoweringError: buffers do not support the dtype.
    """
    if type_.dtype not in TYPE_CODES:
        raise LoweringError(
            f"buffers do not support elements of {type_.dtype}",
            expected=f"one of {', '.join(sorted(dtype.name for dtype in TYPE_CODES))}",
            found=str(type_),
            remedy="convert the array first; such floats exist inside programs only",
        )
    made = Aval()
    made.shape, made.dtype, made.weak_type = type_.shape, type_.dtype, type_.weak
    made.array_type = type_
    made.memory_at = memory_of(type_.size * type_.dtype.itemsize)
    # The dtypes that ml_dtypes adds have no letter in the buffer protocol.
    made.has_buffer_protocol = type_.dtype.num < _FIRST_OF_OTHER_LIBRARIES
    return backend().avals.setdefault((type_.shape, type_.dtype, type_.weak), made)


def handler_of(type_: ArrayType) -> _jax.ResultHandler:
    """Return jaxlib's handler that makes a :class:`Buffer` of a result of the type."""
    xla = backend()
    aval = aval_of(type_)
    found = xla.handlers.get(aval)
    return found or xla.handlers.setdefault(aval, new_handler(aval, xla.sharding, False))


def new_handler(aval: Aval, sharding: object, committed: bool) -> _jax.ResultHandler:
    """Return jaxlib's handler that makes a :class:`Buffer` with this aval and sharding."""
    from jaxlib import _jax

    try:
        # Without it, jaxlib 0.10 calls a method that only jax adds to arrays.
        return _jax.array_result_handler(aval, sharding, committed=committed, _skip_checks=True)
    except TypeError:
        return _jax.array_result_handler(aval, sharding, committed=committed)


def max_nesting() -> int:
    """Return the depth of nested functions, loops and branches that XLA compiles.

    Its compiler is recursive, and aborts the process when its stack overflows: at 128 levels or
    somewhat more with jaxlib 0.10, at 640 or more with 0.12. The limit is about half of that.
    """
    from jaxlib import version

    return 80 if version.__version_info__ < (0, 12) else 320


def _connect(asynchronous: bool, num_devices: int | None) -> Backend:
    quieten()
    try:
        from jaxlib import _jax, version, xla_client
    except ImportError as error:
        raise LoweringError(
            "XLA cannot be loaded", found=str(error), remedy="pip install jaxlib"
        ) from error
    if version.__version_info__ < OLDEST:
        raise LoweringError(
            "this jaxlib is too old",
            expected=".".join(map(str, OLDEST)),
            found=version.__version__,
            remedy="pip install --upgrade jaxlib",
        )
    _set_states()
    members = joined_group()
    client = (
        xla_client.make_cpu_client(asynchronous, num_devices=num_devices or _configured())
        if members is None
        else _connect_with_others(members, asynchronous, num_devices)
    )
    first = client.local_devices()[0]
    # XLA releases NumPy arrays when it runs next; without this, a program that no longer uses XLA
    # would never free them.
    gc.callbacks.append(lambda _phase, _info: _jax.collect_garbage())
    return Backend(
        client=client,
        devices=tuple(client.devices()),
        placement=[first],
        device_list=_jax.DeviceList((first,)),
        sharding=_new_sharding(first),
        zero_copy=_jax.HostBufferSemantics.ZERO_COPY,
        device_put=_jax.batched_device_put,
        wait=_jax.batched_block_until_ready,
        capsule=_jax.buffer_to_dlpack_managed_tensor,
        flatten=_jax.pytree.PyTreeRegistry().flatten,
        asynchronous=asynchronous,
    )


def _connect_with_others(
    members: Group, asynchronous: bool, num_devices: int | None
) -> _jax.Client:
    """Return the client of this process in its group. Raises ProcessError."""
    from jaxlib import _jax, xla_client

    options = members.options
    # XLA reads its flags with the client; one that the user sets stays, as the last one counts.
    limit = f"--xla_cpu_collective_timeout_seconds={options.collective_timeout}"
    os.environ["XLA_FLAGS"] = f"{limit} {os.environ.get('XLA_FLAGS', '')}"
    minutes = max(1, ceil(options.init_timeout / 60))
    try:
        return xla_client.make_cpu_client(
            asynchronous,
            distributed_client=members.client,
            node_id=options.rank,
            num_nodes=options.size,
            collectives=_jax.make_gloo_tcp_collectives(
                distributed_client=members.client, hostname=members.host
            ),
            num_devices=num_devices or options.num_devices or _configured(),
            get_local_topology_timeout_minutes=minutes,
            get_global_topology_timeout_minutes=minutes,
        )
    except RuntimeError as error:
        members.check()
        raise ProcessError(
            "not all processes started XLA",
            expected=f"the first array or compilation of each within {minutes} min",
            found=str(error).strip(),
            remedy="use arrays in every process; or ask for `effax.devices()` at the start",
        ) from None


def _set_states() -> None:
    """Set the three states that jaxlib's C++ code requires.

    They are global to the process. If jax was imported, its states stay; if it is imported later,
    they replace these. This package does not depend on the 64-bit state: each ``device_put`` keeps
    64 bits explicitly.
    """
    # Programs that run under `effax.drop_in` have a module `jax` too, without private ones.
    if "jax._src" in sys.modules:
        return
    from jaxlib import _jax

    _jax.jax_jit.set_enable_x64_state(_jax.config.Config("effax_enable_x64", False))
    _jax.jax_jit.set_disable_jit_state(_jax.config.Config("effax_disable_jit", False))
    _jax.jax_jit.set_post_hook_state(_jax.config.Config("effax_post_hook", None))


def _new_sharding(device: _jax.Device) -> _jax.SingleDeviceSharding:
    from jaxlib import _jax, xla_client

    replicated = xla_client.HloSharding.replicate()

    class Sharding(_jax.SingleDeviceSharding):
        """A sharding of one device, with the two members that jaxlib's C++ code reads."""

        memory_kind: str | None = None

        def _to_xla_hlo_sharding(self, ndim: int) -> xla_client.HloSharding:
            del ndim
            return replicated

    return Sharding(device)
