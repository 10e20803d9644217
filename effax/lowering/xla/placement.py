"""Buffers over several devices: which device has which part, reading and writing of the parts.

All devices of a placement are in one order, which programs, placements and jaxlib's lists share;
a *position* is an index into it. Every position has one part; devices that have the same part are
its copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Final, Protocol, cast, final

import numpy as np

from effax.ir.errors import IllTyped, LoweringError
from effax.ir.types import ArrayType, Shape
from effax.lowering.xla import dlpack
from effax.lowering.xla.backend import (
    Buffer,
    Device,
    aval_of,
    backend,
    buffer_type,
    device_list,
    new_handler,
    spanning,
)
from effax.lowering.xla.buffers import in_buffer, unreadable

if TYPE_CHECKING:
    from jaxlib import _jax
    from jaxlib.xla_client import HloSharding

Index = tuple[slice, ...]
"""The position of a part in the whole array, one slice an axis."""


_MOST_SHAPES: Final = 256
"""The number of shapes for which a placement keeps the indices of its parts."""


@final
class Placement:
    """The parts of an array and the devices that have them. Interned: compare by identity.

    Attributes:
        devices: the devices.
        tiles: the number of parts along each axis.
        parts: for each part, in row-major order, the positions of the devices that have it.
        sharding: jaxlib's object.
        local: the positions of the devices of this process.
        own_devices: these devices.
    """

    __slots__ = (
        "_fronts", "_hlo", "_indices", "devices", "local", "own_devices", "parts", "sharding",
        "tiles",
    )  # fmt: skip

    def __init__(
        self, devices: tuple[Device, ...], tiles: Shape, parts: tuple[tuple[int, ...], ...]
    ) -> None:
        self.devices: Final = devices
        self.tiles: Final = tiles
        self.parts: Final = parts
        self._hlo: Final = _hlo_sharding(tiles, parts)
        self.sharding: Final = _gspmd(devices, self._hlo)
        here = backend().client.process_index()
        self.local: Final = tuple([k for k, d in enumerate(devices) if d.process_index == here])
        # jaxlib describes its devices by another class.
        self.own_devices: Final = cast("list[_jax.Device]", [devices[k] for k in self.local])
        self._fronts: Final[dict[int, _jax.GSPMDSharding]] = {}
        self._indices: Final[dict[Shape, tuple[Index, ...]]] = {}

    @property
    def hlo(self) -> object:
        """Return XLA's description of the parts, jaxlib's object."""
        return self._hlo

    @property
    def is_replicated(self) -> bool:
        """Return whether every device has the whole array."""
        return len(self.parts) == 1

    @property
    def is_local(self) -> bool:
        """Return whether all devices are of this process."""
        return len(self.local) == len(self.devices)

    def front(self, k: int) -> _jax.GSPMDSharding:
        """Return jaxlib's sharding with position ``k`` first, by which its part is read."""
        found = self._fronts.get(k)
        if found is None:
            rest = (*self.devices[:k], *self.devices[k + 1 :])
            found = self._fronts[k] = _gspmd((self.devices[k], *rest), self._hlo)
        return found

    def shard_shape(self, shape: Shape) -> Shape:
        """Return the shape of a part. Raises IllTyped where an axis does not divide."""
        for axis, (n, count) in enumerate(zip(shape, self.tiles, strict=True)):
            if n % count:
                raise IllTyped(
                    f"dimension {axis} does not divide over the devices",
                    expected=f"a multiple of {count}",
                    found=str(n),
                )
        return tuple([n // count for n, count in zip(shape, self.tiles, strict=True)])

    def indices(self, shape: Shape) -> tuple[Index, ...]:
        """Return where each position's part is in an array of a shape."""
        known = self._indices.get(shape)
        if known is not None:
            return known
        sizes = self.shard_shape(shape)
        found: list[Index] = [()] * len(self.devices)
        for at, having in zip(np.ndindex(*self.tiles), self.parts, strict=True):
            index = tuple([slice(i * n, (i + 1) * n) for i, n in zip(at, sizes, strict=True)])
            for k in having:
                found[k] = index
        if len(self._indices) >= _MOST_SHAPES:
            self._indices.clear()
        return self._indices.setdefault(shape, tuple(found))

    def replica_ids(self) -> Mapping[int, int]:
        """Return, for each position, its number among the devices that have its part."""
        return {k: i for having in self.parts for i, k in enumerate(having)}

    def extended(self, ndim: int) -> Placement:
        """Return the placement of arrays with more axes, which are not divided."""
        rest = (1,) * (ndim - len(self.tiles))
        return placement_over(self.devices, (*self.tiles, *rest), self.parts) if rest else self

    def __repr__(self) -> str:
        return f"Placement({self.tiles}, {self.parts})"


_placements: Final[dict[tuple[object, ...], Placement]] = {}


def placement_over(
    devices: tuple[Device, ...], tiles: Shape, parts: tuple[tuple[int, ...], ...]
) -> Placement:
    """Return the placement of these parts (:class:`Placement`)."""
    if len(parts) != prod(tiles) or sorted(k for p in parts for k in p) != [*range(len(devices))]:
        # XLA would end the process.
        raise LoweringError("the parts of an array are not one for each device", found=repr(parts))
    key = (devices, tiles, parts)
    return _placements.get(key) or _placements.setdefault(key, Placement(*key))


def replicated(devices: tuple[Device, ...], ndim: int) -> Placement:
    """Return the placement of a whole array of ``ndim`` axes on every device."""
    return placement_over(devices, (1,) * ndim, (tuple(range(len(devices))),))


class DeviceTiles(Protocol):
    """The sharding of an array in an executable of XLA."""

    def is_replicated(self) -> bool: ...
    def is_tiled(self) -> bool: ...
    def tile_assignment_dimensions(self) -> Sequence[int]: ...
    def tile_assignment_devices(self) -> Sequence[int]: ...


def placement_of(hlo: DeviceTiles, devices: tuple[Device, ...], ndim: int) -> Placement:
    """Return the placement that XLA chose. Raises LoweringError for one that is not of parts."""
    if hlo.is_replicated() or len(devices) == 1:
        return replicated(devices, ndim)
    if not hlo.is_tiled():
        raise LoweringError("XLA placed an array in a way that has no parts", found=str(hlo))
    tiles = tuple(hlo.tile_assignment_dimensions())[:ndim]
    grid = np.array(hlo.tile_assignment_devices()).reshape(prod(tiles), -1)
    return placement_over(devices, tiles, tuple([tuple(sorted(row)) for row in grid.tolist()]))


def places_of(
    shardings: Sequence[object], devices: tuple[Device, ...], types: Sequence[ArrayType]
) -> tuple[Placement, ...]:
    """Return the placements that XLA reports; where it reports none, whole arrays."""
    from jaxlib.xla_client import HloSharding

    ranks = [len(type_.shape) for type_ in types]
    if len(shardings) != len(ranks):
        return tuple([replicated(devices, n) for n in ranks])
    pairs = zip(shardings, ranks, strict=True)
    return tuple([placement_of(HloSharding.from_proto(s), devices, n) for s, n in pairs])


def _hlo_sharding(tiles: Shape, parts: tuple[tuple[int, ...], ...]) -> HloSharding:
    from jaxlib._hlo import HloSharding

    if len(parts) == 1:
        return HloSharding.replicate()
    copies = len(parts[0])
    sizes = ",".join(map(str, (*tiles, copies) if copies > 1 else tiles))
    order = ",".join(str(k) for having in parts for k in having)
    last = " last_tile_dim_replicate" if copies > 1 else ""
    return HloSharding.from_string(f"{{devices=[{sizes}]{order}{last}}}")


def _gspmd(devices: tuple[Device, ...], hlo: HloSharding) -> _jax.GSPMDSharding:
    from jaxlib import _jax

    return _jax.GSPMDSharding(device_list(devices), hlo)


def put_parts(parts: Mapping[int, np.ndarray], type_: ArrayType, place: Placement) -> Buffer:
    """Return a buffer of these parts, each copied to its device.

    Args:
        parts: the part of each local position; parts of several may be one array.
        type_: the type of the whole.
        place: the placement.

    Raises:
        IllTyped: a part has another shape or dtype.
        ProcessError: none of the devices is of this process.
    """
    from jaxlib import _jax

    stored = buffer_type(type_)
    if stored is not type_:
        parts = {k: in_buffer(parts[k]) for k in place.local}
    type_ = stored
    spanning(place.devices)
    shape = place.shard_shape(type_.shape)
    for k in place.local:
        if parts[k].shape != shape or parts[k].dtype != type_.dtype:
            raise IllTyped(
                f"the part of device {place.devices[k]} has another type",
                expected=f"{type_.dtype.name}{list(shape)}",
                found=f"{parts[k].dtype.name}{list(parts[k].shape)}",
            )
    own = [parts[k] for k in place.local]
    # XLA copies each part, where all are copies the first; two parts at one address are an error.
    addresses = {x.__array_interface__["data"][0] for x in own}
    if len(addresses) < len(own) and not place.is_replicated:
        own = [np.array(x, order="C") for x in own]
    made: Buffer = _jax.batched_device_put(
        aval_of(type_),
        place.sharding,
        own,
        place.own_devices,
        True,
        True,
        backend().zero_copy,
        True,
    )
    made.block_until_ready()
    return made


def put_whole(value: np.ndarray, type_: ArrayType, place: Placement) -> Buffer:
    """Return a buffer with the contents of an array, divided over the devices."""
    indices = place.indices(value.shape)
    return put_parts({k: value[indices[k]] for k in place.local}, type_, place)


def read_part(buffer: Buffer, place: Placement, k: int) -> np.ndarray:
    """Return a read-only view of the part at a local position.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    from jaxlib import _jax

    try:
        first = _jax.reorder_shards(buffer, place.front(k), _jax.ArrayCopySemantics.REUSE_INPUT)
        view = dlpack.as_numpy(backend().capsule(first))
    except (BufferError, RuntimeError) as error:
        raise unreadable(buffer, error=error) from error
    view.flags.writeable = False
    return view


def copied_parts(buffer: Buffer, place: Placement) -> Buffer:
    """Return a buffer of its own memory with the same contents."""
    parts = {k: read_part(buffer, place, k) for k in place.local}
    return put_parts(parts, buffer.aval.array_type, place)


def gathered(buffer: Buffer, place: Placement) -> np.ndarray:
    """Return the whole array: a view where a device of this process has it, else a copy.

    Raises:
        LoweringError: the buffer was deleted or donated, or parts are in other processes.
    """
    here = set(place.local)
    if place.is_replicated and here:
        return read_part(buffer, place, place.local[0])
    shape = buffer.aval.shape
    whole, indices = np.empty(shape, buffer.aval.dtype), place.indices(shape)
    for having in place.parts:
        k = next((k for k in having if k in here), None)
        if k is None:
            raise LoweringError(
                "parts of this array are on devices of other processes",
                expected="an array all of whose parts are on devices of this process",
                found=f"parts on {len(here)} of {len(place.devices)} devices",
                remedy="read `x.addressable_shards`, or gather it: "
                "`multihost_utils.process_allgather(x)`",
            )
        whole[indices[k]] = read_part(buffer, place, k)
    whole.setflags(write=False)
    return whole


def from_single(buffers: Sequence[Buffer], type_: ArrayType, place: Placement) -> Buffer:
    """Return a buffer whose parts are buffers of one device each, in the order of ``local``."""
    made: Buffer = handler_at(type_, place)(list(buffers))
    return made


_handlers: Final[dict[tuple[object, Placement], _jax.ResultHandler]] = {}


def handler_at(type_: ArrayType, place: Placement) -> _jax.ResultHandler:
    """Return jaxlib's handler that makes a :class:`Buffer` of a result of a program."""
    aval = aval_of(type_)
    found = _handlers.get((aval, place))
    return found or _handlers.setdefault((aval, place), new_handler(aval, place.sharding, True))
