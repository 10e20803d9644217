"""The placement of arrays: their devices, shardings and shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from effax.ir.errors import BadArgument, ConcretizationError
from effax.ir.types import Unsharded
from effax.lowering.xla import Device, devices

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
        replica_id: 0: each part is on one device.
        data: the array of the part.
    """

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Array


class OnDevice:
    """The placement of an array, which is on the first device."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def type(self) -> ArrayType: ...

    @property
    def sharding(self) -> Sharding:
        """Return the sharding: that of ``device_put`` or ``jit``, or the first device."""
        from effax.arrays.sharding import SingleDeviceSharding

        return SingleDeviceSharding(devices()[0])

    @property
    def device(self) -> Device:
        """Return the device of the array."""
        return devices()[0]

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
        """Return the array on a device. Raises BadArgument for another than the first one."""
        del stream
        return self.placed(placement(device, "to_device"))

    def placed(self, sharding: Sharding | None) -> Array:
        """Return the array with a sharding, unchecked; of None, or of a symbol, itself."""
        del sharding
        return self._array()

    def copy_to_host_async(self) -> None:
        """Do nothing: the memory of an array is the host's."""

    @property
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
    """Raise BadArgument unless a device is the first one, where all arrays are, or its platform."""
    first = devices()[0]
    if device not in (first, first.platform):
        raise BadArgument(
            f"{what}: arrays are on the first device only",
            expected=f"None or {first}",
            found=f"{device!r:.80}",
            remedy="`shard_map` distributes a computation",
        )


def on_device(x: Array, device: object, what: str) -> Array:
    """Return an array on a device or with a sharding. Raises as :func:`placement`."""
    return x if device is None else x.placed(placement(device, what))


def placement(device: object, what: str) -> Sharding | None:
    """Return the sharding that a device, a sharding or None denotes; None for that of a type.

    Raises:
        BadArgument: it has other devices than the first one, or is none of these.
    """
    from effax.arrays.sharding import Sharding, SingleDeviceSharding

    if isinstance(device, Sharding):
        for x in device.device_set:
            check_device(x, what)
        return device
    if device is None or isinstance(device, Unsharded):
        return None
    check_device(device, what)
    return SingleDeviceSharding(devices()[0])
