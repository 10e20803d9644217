"""Arrays that are placed on devices by the user: whole on one of several, or divided over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast, final

import numpy as np

from effax.arrays.array import Array
from effax.arrays.device_array import DeviceArray
from effax.arrays.devices_in_use import in_use
from effax.arrays.placed import Shard
from effax.arrays.sharding import Sharding, SingleDeviceSharding, shown_indices
from effax.arrays.traced_array import TracedArray
from effax.ir.errors import BadArgument
from effax.ir.memo import memoize
from effax.ir.types import ArrayType, array_type
from effax.lowering import xla
from effax.lowering.xla import Buffer, Device, Placement
from effax.lowering.xla.backend import buffer_type


@final
class PlacedType:
    """The type of an array and its sharding: the key of a placed argument in caches of calls.

    Attributes:
        type: the type.
        sharding: the sharding.
        place: the placement of the buffer, which has further axes where elements are keys.
    """

    __slots__ = ("place", "sharding", "type")

    def __init__(self, type_: ArrayType, sharding: Sharding, place: Placement) -> None:
        self.type: ArrayType = type_
        self.sharding: Sharding = sharding
        self.place: Placement = place


@memoize(maxsize=4096)
def placed_type(type_: ArrayType, sharding: Sharding) -> PlacedType:
    """Return the type of arrays with a sharding over devices. Interned: compare by identity.

    Raises IllTyped where the sharding does not divide an array of the type.
    """
    sharding.shard_shape(type_.shape)
    in_use.several_devices = True
    place = sharding.placement(len(type_.shape))
    assert place is not None, "the sharding is over devices"
    return PlacedType(type_, sharding, place.extended(len(buffer_type(type_).shape)))


@final
class PlacedArray(DeviceArray):
    """An array whose sharding is over devices.

    ``buffer`` is a copy on the first device, for what knows of no other; ``parts`` is the buffer
    over the devices.
    """

    __slots__ = ("_parts",)

    # Caches find calls by this attribute: other placements have other programs.
    _type: PlacedType  # type: ignore[assignment]  # that of an array without a placement is its type

    def __init__(
        self, placed: PlacedType, parts: Buffer | None, value: np.ndarray | None = None
    ) -> None:
        self._value = value
        self._buffer = None
        self._type = placed
        self._parts = parts

    @property
    def placed_type(self) -> PlacedType:
        """Return the type and the sharding."""
        return self._type

    @property
    def type(self) -> ArrayType:
        return self._type.type

    @property
    def sharding(self) -> Sharding:
        return self.placed_type.sharding

    @property
    def committed(self) -> bool:
        """Return True: a computation with it is on its devices."""
        return True

    _committed = committed

    @property
    def parts(self) -> Buffer:
        """Return the buffer over the devices."""
        if self._parts is None:
            assert self._value is not None
            self._parts = put_value(self._value, self.type, self.placed_type.place)
        return self._parts

    def numpy(self) -> np.ndarray:
        if self._value is None:
            assert self._parts is not None
            whole = xla.gathered(self._parts, self.placed_type.place)
            self._value = xla.buffer_contents(whole, self.type)
        return self._value

    @property
    def buffer(self) -> Buffer:
        if self._buffer is None:
            self._buffer = xla.put(self.numpy(), weak=self.type.weak)
        return self._buffer

    @property
    def device(self) -> Device | Sharding:  # type: ignore[override]  # as JAX: the sharding of several
        devices = self.placed_type.place.devices
        return devices[0] if len(devices) == 1 else self.sharding

    @property
    def is_fully_addressable(self) -> bool:
        return self.placed_type.place.is_local

    @property
    def addressable_shards(self) -> list[Shard]:
        return [self._shard(k) for k in self.placed_type.place.local]

    @property
    def global_shards(self) -> list[Shard]:
        return [self._shard(k) for k in range(len(self.placed_type.place.devices))]

    def _shard(self, k: int) -> Shard:
        place = self.placed_type.place
        shown = shown_indices(place, self.parts.aval.shape)[k][: len(self.shape)]
        data = self._part(k) if k in place.local else None
        return Shard(place.devices[k], shown, place.replica_ids()[k], cast("DeviceArray", data))

    def _part(self, k: int) -> PlacedArray:
        """Return one device's part, on that device."""
        place = self.placed_type.place
        shape = self.sharding.shard_shape(self.shape)
        type_ = self.type.update(shape=shape)
        made = placed_type(type_, SingleDeviceSharding(place.devices[k]))
        view = xla.read_part(self.parts, place, k)
        return PlacedArray(made, None, xla.buffer_contents(np.array(view), type_))

    def addressable_data(self, index: int) -> PlacedArray:
        """Return the part of one of this process's devices. Raises IndexError."""
        return self._part(self.placed_type.place.local[index])

    def delete(self) -> None:
        self.parts.delete()
        self._value = self._buffer = None

    def is_deleted(self) -> bool:
        return self._parts is not None and self._parts.is_deleted()

    def block_until_ready(self) -> PlacedArray:
        if self._parts is not None:
            xla.block(self._parts)
        return self

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the first byte. Raises BadArgument where there are several."""
        place = self.placed_type.place
        if len(place.devices) > 1:
            raise self._several("unsafe_buffer_pointer")
        return xla.read_part(self.parts, place, 0).ctypes.data

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if len(self.placed_type.place.devices) > 1:
            raise self._several("DLPack")
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        if len(self.placed_type.place.devices) > 1:
            raise self._several("DLPack")
        return super().__dlpack_device__()

    def _several(self, what: str) -> BadArgument:
        return BadArgument(
            f"{what} is of an array on one device",
            expected="an array whose elements are in one device's memory",
            found=f"{self.type} over {len(self.placed_type.place.devices)} devices",
            remedy="use the parts: `x.addressable_shards[0].data`; or NumPy's copy: "
            "`np.asarray(x)`",
        )

    @property
    def is_readable(self) -> bool:
        """Return whether this process has the whole value, if only in parts."""
        place = self.placed_type.place
        return place.is_local or (place.is_replicated and bool(place.local))

    def __repr__(self) -> str:
        if self.is_readable:
            return super().__repr__()
        return f"Array(shape={self.shape}, dtype={self.dtype})"

    def __str__(self) -> str:
        return super().__str__() if self.is_readable else repr(self)


_ON_FIRST: Final = (DeviceArray, TracedArray)
"""The classes of arrays without a placement."""


def placed_types(leaves: Sequence[object]) -> tuple[PlacedType | None, ...]:
    """Return the type and sharding of each leaf that is placed, else None; nothing where none is.

    A type with a sharding, of an argument to come, counts as its argument; a reference has the type
    of its contents.
    """
    # Before XLA runs, the number of devices is a look into the environment.
    if all([type(x) in _ON_FIRST for x in leaves]) or xla.number_of_devices() == 1:  # noqa: C419  # a list is faster
        return ()
    found = [x.placed_type if type(x) is PlacedArray else _of_type(x) for x in leaves]
    return tuple(found) if any(t is not None for t in found) else ()


def _of_type(x: object) -> PlacedType | None:
    if isinstance(x, PlacedType):
        return x
    contents = getattr(x, "contents", None)
    if isinstance(contents, PlacedType):
        return contents
    sharding = None if isinstance(x, Array) else getattr(x, "sharding", None)
    type_ = getattr(x, "type", None)
    if not isinstance(sharding, Sharding) or not isinstance(type_, ArrayType):
        return None
    place = sharding.placement(len(type_.shape))
    return None if place is None else placed_type(type_, sharding)


def placed_array(x: DeviceArray, sharding: Sharding) -> PlacedArray:
    """Return an array with a sharding over devices; if it has it already, itself.

    Raises IllTyped where the sharding does not divide it.
    """
    wanted = placed_type(x.type, sharding)
    if isinstance(x, PlacedArray):
        if x.placed_type is wanted:
            return x
        if x.placed_type.place is wanted.place:
            return PlacedArray(wanted, x.parts)
    return PlacedArray(wanted, put_value(x.numpy(), x.type, wanted.place))


def put_value(value: np.ndarray, type_: ArrayType, place: Placement) -> Buffer:
    """Return a buffer over devices with a value; of keys, with their words."""
    whole = xla.to_numpy(xla.put(value)) if value.dtype.kind == "V" else value
    return xla.put_whole(whole, array_type(whole.shape, whole.dtype, type_.weak), place)


def parts_of(
    indices: Mapping[int, tuple[slice, ...]], part: Callable[[tuple[slice, ...]], np.ndarray]
) -> dict[int, np.ndarray]:
    """Return the part of each position; positions of one index share the result of one call."""
    made: dict[str, np.ndarray] = {}
    for index in indices.values():
        if str(index) not in made:
            made[str(index)] = part(index)
    return {k: made[str(index)] for k, index in indices.items()}


def from_parts(
    type_: ArrayType, sharding: Sharding, parts: Mapping[int, np.ndarray]
) -> PlacedArray:
    """Return the array of the parts of this process's devices, by position.

    Raises IllTyped where a part has another type.
    """
    placed = placed_type(type_, sharding)
    return PlacedArray(placed, xla.put_parts(parts, type_, placed.place))


def from_single_devices(
    type_: ArrayType, sharding: Sharding, arrays: Sequence[DeviceArray], what: str
) -> PlacedArray:
    """Return the array whose parts are arrays on this process's devices, in any order.

    Raises:
        BadArgument: there is not one array for each device.
        IllTyped: an array has another type than the part.
    """
    placed = placed_type(type_, sharding)
    place = placed.place
    of = {d: x for x in arrays for d in x.devices()}
    wanted = [place.devices[k] for k in place.local]
    if set(of) != set(wanted) or len(arrays) != len(wanted):
        raise _not_one_each(what, wanted, arrays)
    parts = {k: of[place.devices[k]].numpy() for k in place.local}
    return PlacedArray(placed, xla.put_parts(parts, type_, place))


def _not_one_each(
    what: str, wanted: Sequence[Device], arrays: Sequence[DeviceArray]
) -> BadArgument:
    return BadArgument(
        f"{what} takes one array for each device of this process in the sharding",
        expected=f"{len(wanted)} arrays, on {', '.join(map(str, wanted))}",
        found=f"{len(arrays)} arrays, on "
        + ", ".join(sorted({str(d) for x in arrays for d in x.devices()})),
        remedy="put each on its device: `device_put(x, device)`",
    )
