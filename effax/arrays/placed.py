"""The placement of arrays: their devices, shardings and shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from effax.ir.errors import BadArgument, ConcretizationError
from effax.ir.types import Unsharded
from effax.lazy.dataclasses import dataclass
from effax.lowering.xla import Device, devices, first_device

if TYPE_CHECKING:
    from effax.arrays.array import Array
    from effax.arrays.sharding import Sharding
    from effax.ir.types import ArrayType


@dataclass(frozen=True, eq=False)
class Shard:
    """A part of an array on one device.

    Attributes:
        device: the device.
        index: the part, as an index of the array.
        replica_id: the number of the device among those that have this part.
        data: the array of the part, on the device; None where that is of another process.
    """

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Array


class OnDevice:
    """The placement of an array, which is on the first device unless a subclass says otherwise."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def type(self) -> ArrayType: ...

    @property
    def sharding(self) -> Sharding:
        """Return the sharding: that of ``device_put`` or ``jit``, or the first device."""
        from effax.arrays.sharding import SingleDeviceSharding

        return SingleDeviceSharding(first_device())

    @property
    def device(self) -> Device:
        """Return the device of the array."""
        return first_device()

    def devices(self) -> set[Device]:
        """Return the devices that the sharding names."""
        return self.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Return True: every array is of this process."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether every device of the sharding has the whole array."""
        return self.sharding.is_fully_replicated

    @property
    def committed(self) -> bool:
        """Return False: no array is bound to a device."""
        return False

    _committed = committed

    def is_ready(self) -> bool:
        """Return True: calls return when they are done."""
        return True

    def _array(self) -> Array:
        return cast("Array", self)

    @property
    def addressable_shards(self) -> list[Shard]:
        """Return the parts of this process: the whole array, on the first device."""
        return [Shard(self.device, (slice(None),) * len(self.type.shape), 0, self._array())]

    @property
    def global_shards(self) -> list[Shard]:
        """Return the parts of all processes, which are those of this one."""
        return self.addressable_shards

    def addressable_data(self, index: int) -> Array:
        """Return a part by its position. Raises IndexError."""
        self.addressable_shards[index]
        return self._array()

    def to_device(self, device: Device | Sharding, *, stream: int | None = None) -> Array:
        """Return the array on a device, or with a sharding. Raises BadArgument."""
        del stream
        return self.placed(placement(device, "to_device"))

    def placed(self, sharding: Sharding | None) -> Array:
        """Return the array with a sharding, unchecked; of None, or of a symbol, itself."""
        del sharding
        return self._array()

    def copy_to_host_async(self) -> None:
        """Do nothing: the memory of an array is the host's."""

    def on_device_size_in_bytes(self) -> int:
        """Return the number of bytes of the elements."""
        return self.type.size * self.type.dtype.itemsize

    def delete(self) -> None:
        """Free the memory. A later use of the array raises LoweringError.

        Raises ConcretizationError for a symbol, which has none.
        """
        raise ConcretizationError("a symbol has no memory to delete", found=str(self.type))

    def is_deleted(self) -> bool:
        """Return whether the memory is freed, by :meth:`delete` or by donation."""
        return False


def check_device(device: object, what: str) -> None:
    """Raise BadArgument unless a device is one of the devices, or their platform."""
    known = devices()
    if device not in (*known, known[0].platform):
        raise BadArgument(
            f"{what}: unknown device",
            expected=f"None or one of {', '.join(map(str, known))}",
            found=f"{device!r:.80}",
            remedy="see `effax.devices()`; `shard_map` distributes a computation",
        )


def is_first_device(device: object) -> bool:
    """Return whether a device is the first one, or its platform."""
    first = first_device()
    return device in (first, first.platform)


def check_first_device(device: object, what: str) -> None:
    """Raise BadArgument unless a device is the first one, or its platform."""
    if not is_first_device(device):
        raise BadArgument(
            f"{what} is the first device",
            expected=f"None or {first_device()}",
            found=f"{device!r:.80}",
            remedy="place the arguments: `device_put(x, device)`",
        )


def on_device(x: Array, device: object, what: str) -> Array:
    """Return an array on a device or with a sharding. Raises as :func:`placement`."""
    return x if device is None else x.placed(placement(device, what))


def placed_by(x: Array, device: object, out_sharding: object, what: str) -> Array:
    """Return an array on a device or with a sharding. Raises BadArgument for both of them."""
    if device is None or out_sharding is None:
        return on_device(x, out_sharding if device is None else device, what)
    raise BadArgument(f"{what} takes a place once", "`device` or `out_sharding`", "both")


def placement(device: object, what: str) -> Sharding | None:
    """Return the sharding that a device, a sharding or None denotes; None for that of a type.

    Raises:
        BadArgument: it is none of these, or a specification without a mesh in use.
    """
    from effax.arrays.sharding import PartitionSpec, Sharding, SingleDeviceSharding, resolved

    if isinstance(device, Sharding | PartitionSpec):
        return resolved(device, what)
    if device is None or isinstance(device, Unsharded):
        return None
    check_device(device, what)
    found = next((d for d in devices() if d == device), first_device())
    return SingleDeviceSharding(found)
