"""The client: one a process, made when it is first needed, and what is made once beside it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Final, Protocol, final

from effax.ir.dtypes import BOOL, FLOAT0, DType
from effax.ir.errors import BadArgument, LoweringError
from effax.ir.types import ArrayType, Shape, array_type
from effax.lowering.xla.dlpack import TYPE_CODES, memory_of

if TYPE_CHECKING:
    from jaxlib import _jax

OLDEST: Final = (0, 10, 2)
"""The oldest jaxlib that this package knows."""

_FIRST_OF_OTHER_LIBRARIES: Final = 256
"""NumPy's number of the first dtype that another library registered (NPY_USERDEF)."""


@final
class Aval:
    """What jaxlib asks about an array's type. Interned: one object an :class:`ArrayType`."""

    __slots__ = ("array_type", "dtype", "has_buffer_protocol", "memory_at", "shape", "weak_type")

    shape: Shape
    dtype: DType
    weak_type: bool
    array_type: ArrayType
    memory_at: Callable[[int], memoryview]
    has_buffer_protocol: bool

    def __repr__(self) -> str:
        return f"Aval({self.array_type})"


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
        """Its model, as far as the platform tells."""
        ...


class Buffer(Protocol):
    """An array in a device's memory: jaxlib's own object. Only this package takes it apart."""

    @property
    def aval(self) -> Aval:
        """Its interned type: compare by identity."""
        ...

    def __buffer__(self, flags: int, /) -> memoryview:
        """Python's buffer protocol, for the dtypes that have it."""
        ...

    def block_until_ready(self) -> object:
        """Wait until it is written."""
        ...

    def delete(self) -> None:
        """Free its memory."""
        ...

    def is_deleted(self) -> bool:
        """Whether its memory is freed or donated."""
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
    """The client and its first device, which everything runs on, with what is made once a type.

    ``flatten`` gives the leaves of a tree of None, tuples, lists and dicts (anything else is a
    leaf), and its structure.

    An entry of a table depends on its key alone: two threads that make one twice do no harm, since
    the first to be stored is the one that is kept.
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
    """What is one a process, as XLA's clients are."""

    __slots__ = ("backend", "lock")

    def __init__(self) -> None:
        self.backend: Backend | None = None
        self.lock: Final = RLock()


_process: Final = _Process()


def backend() -> Backend:
    """The backend, started with the default options where it was not started yet."""
    return _process.backend or start()


def start(*, asynchronous: bool | None = None, num_devices: int | None = None) -> Backend:
    """Start XLA. Needed only for other options than the defaults, before anything else uses it.

    Args:
        asynchronous: whether a call may return before it is done; by default it may not. If it
            may, NumPy must not write into memory that a call may still be reading (see
            :func:`effax.lowering.xla.raw_view`).
        num_devices: how many devices the host's processors stand for; by default what XLA_FLAGS
            says, or one.

    Raises:
        BadArgument: it runs already, with other options.
        LoweringError: there is no jaxlib, or an older one than is supported.
    """
    with _process.lock:
        running = _process.backend
        if running is None:
            running = _process.backend = _connect(bool(asynchronous), num_devices)
    has = {"asynchronous": running.asynchronous, "num_devices": len(running.devices)}
    wanted = {"asynchronous": asynchronous, "num_devices": num_devices}
    if any(option is not None and option != has[name] for name, option in wanted.items()):
        raise BadArgument(
            "XLA runs already with other options",
            expected=str(has),
            found=str(wanted),
            remedy="call start before the first array or compilation",
        )
    return running


def devices() -> tuple[Device, ...]:
    """The devices; arrays and programs live on the first one."""
    return backend().devices


def buffer_type(type_: ArrayType) -> ArrayType:
    """The type of the buffer that stands for an array: booleans for ``float0``, of one value."""
    return array_type(type_.shape, BOOL) if type_.dtype == FLOAT0 else type_


def aval_of(type_: ArrayType) -> Aval:
    """The aval of an array type."""
    type_ = buffer_type(type_)
    key = (type_.shape, type_.dtype, type_.weak)
    return backend().avals.get(key) or new_aval(type_)


def new_aval(type_: ArrayType) -> Aval:
    """Make and store the aval of a type that has none yet.

    Raises:
        LoweringError: buffers cannot hold the type's dtype.
    """
    if type_.dtype not in TYPE_CODES:
        raise LoweringError(
            f"no buffer can hold elements of {type_.dtype}",
            expected=f"one of {', '.join(sorted(dtype.name for dtype in TYPE_CODES))}",
            found=str(type_),
            remedy="convert the array first; narrower dtypes than a byte live inside programs only",
        )
    made = Aval()
    made.shape, made.dtype, made.weak_type = type_.shape, type_.dtype, type_.weak
    made.array_type = type_
    made.memory_at = memory_of(type_.size * type_.dtype.itemsize)
    # The dtypes that ml_dtypes adds have no letter in the buffer protocol.
    made.has_buffer_protocol = type_.dtype.num < _FIRST_OF_OTHER_LIBRARIES
    return backend().avals.setdefault((type_.shape, type_.dtype, type_.weak), made)


def handler_of(type_: ArrayType) -> _jax.ResultHandler:
    """What makes a result of that type a :class:`Buffer`."""
    from jaxlib import _jax

    xla = backend()
    aval = aval_of(type_)
    found = xla.handlers.get(aval)
    if found is not None:
        return found
    try:
        # 0.10 would otherwise call a method that only jax gives its arrays.
        made = _jax.array_result_handler(aval, xla.sharding, committed=False, _skip_checks=True)
    except TypeError:
        made = _jax.array_result_handler(aval, xla.sharding, committed=False)
    return xla.handlers.setdefault(aval, made)


def max_nesting() -> int:
    """How many functions, loops and branches XLA compiles inside of each other.

    Its compiler recurs, and ends the process where its stack ends: at 128 levels or somewhat more
    with 0.10, at 640 or more with 0.12.
    """
    from jaxlib import version

    return 80 if version.__version_info__ < (0, 12) else 320


def _connect(asynchronous: bool, num_devices: int | None) -> Backend:
    # As jax does: else XLA reports its devices on standard error.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
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
    client = xla_client.make_cpu_client(asynchronous, num_devices=num_devices)
    found = client.devices()
    # XLA lets go of NumPy arrays only when it runs next; a program that stopped using it frees
    # them at the next collection.
    gc.callbacks.append(lambda _phase, _info: _jax.collect_garbage())
    return Backend(
        client=client,
        devices=tuple(found),
        placement=found[:1],
        device_list=_jax.DeviceList((found[0],)),
        sharding=_new_sharding(found[0]),
        zero_copy=_jax.HostBufferSemantics.ZERO_COPY,
        device_put=_jax.batched_device_put,
        wait=_jax.batched_block_until_ready,
        capsule=_jax.buffer_to_dlpack_managed_tensor,
        flatten=_jax.pytree.PyTreeRegistry().flatten,
        asynchronous=asynchronous,
    )


def _set_states() -> None:
    """Give the C++ side the three states that it refuses to run without.

    They belong to the process. Where jax was imported it has set its own, which stay; when it is
    imported later its own replace these. Nothing here depends on the 64-bit state: every put says
    itself that it keeps 64 bits.
    """
    if sys.modules.get("jax") is not None:
        return
    from jaxlib import _jax

    _jax.jax_jit.set_enable_x64_state(_jax.config.Config("effax_enable_x64", False))
    _jax.jax_jit.set_disable_jit_state(_jax.config.Config("effax_disable_jit", False))
    _jax.jax_jit.set_post_hook_state(_jax.config.Config("effax_post_hook", None))


def _new_sharding(device: _jax.Device) -> _jax.SingleDeviceSharding:
    from jaxlib import _jax, xla_client

    replicated = xla_client.HloSharding.replicate()

    class Sharding(_jax.SingleDeviceSharding):
        """One device, with the two things that the C++ side asks of a sharding in Python."""

        memory_kind: str | None = None

        def _to_xla_hlo_sharding(self, ndim: int) -> xla_client.HloSharding:
            del ndim
            return replicated

    return Sharding(device)
