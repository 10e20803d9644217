"""Sharding of arrays over devices: meshes with named axes, and partition specifications.

A mesh is a grid of devices with named axes. The devices do not change the meaning of a program of
``shard_map``, and one device can run a whole mesh, so a mesh may be made of sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import ClassVar, Protocol, cast

import numpy as np

from effax.arrays.argument_checks import axis_names_of, integers
from effax.arrays.mesh import MESHES, AxisType, Mesh, make_mesh
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.memo import memoize
from effax.ir.partition import Spec, blocks, check_spec, local_type, names_in, spec_text
from effax.ir.types import Shape, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.xla import Device, devices, first_device

__all__ = [
    "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "make_mesh",
]  # fmt: skip


class Unconstrained:
    """The entry of a dimension whose division the compiler chooses."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "PartitionSpec.UNCONSTRAINED"


Entry = str | tuple[str, ...] | Unconstrained | None
"""An entry of a specification: the axes over which a dimension is divided."""


class PartitionSpec:
    """The axes of a mesh over which each dimension of an array is divided.

    ``P('x', None, ('y', 'z'))``: the first dimension over ``x``, the second over none, the third
    over ``y`` and ``z``, of which ``z`` varies fastest. Dimensions left out are not divided.
    """

    __slots__ = ("_entries",)

    UNCONSTRAINED: ClassVar[object] = Unconstrained()
    """The entry of a dimension whose division the compiler chooses."""

    _entries: tuple[Entry, ...]

    def __init__(self, *entries: str | Sequence[str] | Unconstrained | None) -> None:
        object.__setattr__(self, "_entries", tuple([_entry(e) for e in entries]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a spec is immutable: cannot set {name}")

    @property
    def spec(self) -> Spec:
        """Return the names for each dimension."""
        return tuple([e if isinstance(e, tuple) else _names(e) for e in self._entries])

    @property
    def free(self) -> tuple[int, ...]:
        """Return the dimensions whose division the compiler chooses."""
        return tuple([d for d, e in enumerate(self._entries) if isinstance(e, Unconstrained)])

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._entries == other._entries
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return (PartitionSpec, self._entries)

    def __repr__(self) -> str:
        if not self.free:
            return spec_text(self.spec)
        return f"P({', '.join(map(repr, self._entries))})"


P = PartitionSpec


def _names(entry: str | Unconstrained | None) -> tuple[str, ...]:
    return (entry,) if isinstance(entry, str) else ()


def _entry(entry: object) -> Entry:
    if isinstance(entry, Unconstrained):
        return entry
    if entry is None or (isinstance(entry, tuple | list) and not entry):
        return None
    names = axis_names_of(entry, "an entry of a PartitionSpec")
    return names[0] if len(names) == 1 else names


class Sharding:
    """An assignment of parts of an array to devices."""

    @property
    def device_set(self) -> set[Device]:
        """Return the devices."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Return the shape of one device's part."""
        raise NotImplementedError

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether every device has the whole array."""
        raise NotImplementedError

    def placement(self, ndim: int) -> xla.Placement | None:
        """Return the placement of arrays of ``ndim`` axes; None where one device runs them all."""
        raise NotImplementedError

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """Return the devices in order."""
        return tuple(self.device_set)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> object:
        """Return XLA's sharding of arrays of this many axes."""
        place = self.placement(num_dimensions)
        return (
            xla.replicated(self._device_assignment, num_dimensions).hlo
            if place is None
            else place.hlo
        )

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise IllTyped unless the sharding divides an array of this shape."""
        self.shard_shape(aval_shape)

    @property
    def addressable_devices(self) -> set[Device]:
        """Return the devices of this process."""
        here = xla.this_process()
        return {d for d in self.device_set if d.process_index == here}

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """Return the index of each device's part in an array of this shape."""
        shape = integers(global_shape, "devices_indices_map")
        self.shard_shape(shape)
        place = self.placement(len(shape))
        if place is None:
            return dict.fromkeys(self.device_set, (slice(None),) * len(shape))
        return dict(zip(place.devices, shown_indices(place, shape), strict=True))

    def addressable_devices_indices_map(
        self, global_shape: Sequence[int]
    ) -> dict[Device, tuple[slice, ...]]:
        """Return the index of the part of each device of this process."""
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    @property
    def num_devices(self) -> int:
        """Return the number of devices."""
        return len(self.device_set)

    @property
    def is_fully_addressable(self) -> bool:
        """Return whether every device is of this process."""
        return len(self.addressable_devices) == len(self.device_set)

    @property
    def memory_kind(self) -> str:
        """Return the kind of the devices' memory."""
        return "device"

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return whether both place arrays of ``ndim`` axes alike."""
        if self.is_fully_replicated and other.is_fully_replicated:
            return self.device_set == other.device_set
        place = self.placement(ndim)
        if place is not None:
            return place is other.placement(ndim)
        return self == other and ndim >= 0


def shown_indices(place: xla.Placement, shape: Shape) -> list[tuple[slice, ...]]:
    """Return the index of each device's part, of undivided axes ``:``."""
    return [
        tuple([slice(None) if n == 1 else s for s, n in zip(index, place.tiles, strict=True)])
        for index in place.indices(shape)
    ]


@dataclass(frozen=True)
class SingleDeviceSharding(Sharding):
    """The placement of a whole array on one device."""

    device: Device

    @property
    def device_set(self) -> set[Device]:
        """Return the device."""
        return {self.device}

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Return the shape of the array."""
        return integers(global_shape, "shard_shape")

    def placement(self, ndim: int) -> xla.Placement | None:
        """Return the placement on the device; None where there is no other device."""
        return xla.replicated((self.device,), ndim) if len(devices()) > 1 else None

    @property
    def is_fully_replicated(self) -> bool:
        """Return True: the device has the whole array."""
        return True

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r})"


@dataclass(frozen=True)
class NamedSharding(Sharding):
    """A mesh and a specification, which assign a part of an array to each device."""

    mesh: Mesh
    spec: PartitionSpec

    @property
    def device_set(self) -> set[Device]:
        """Return the devices of the mesh; the first device runs a mesh of numbers."""
        return set(self.mesh.devices.flat) if self.mesh.has_devices else {first_device()}

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return tuple(self.mesh.devices.flat) if self.mesh.has_devices else (first_device(),)

    @property
    def num_devices(self) -> int:
        """Return the number of devices of the mesh."""
        return self.mesh.size

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Return the shape of one device's part. Raises IllTyped where dimensions do not divide."""
        shape = integers(global_shape, "shard_shape")
        whole = array_type(shape, "bool")
        try:
            return local_type(whole, self.spec.spec, self.mesh.axes, "the array", "").shape
        except IllTyped as error:
            raise IllTyped(error.what, error.expected, f"{shape}, by {self.spec}") from None

    def placement(self, ndim: int) -> xla.Placement | None:
        """Return the placement on the mesh. Raises IllTyped where the specification has no sense.

        None for a mesh of numbers, which one device runs, and where there is no other device.
        """
        return _named_placement(self.mesh, self.spec, ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether every device has the whole array."""
        sizes = self.mesh.shape
        return all(sizes.get(name, 1) == 1 for names in self.spec.spec for name in names)

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        """Return the sharding of another specification over the same mesh."""
        return NamedSharding(self.mesh, spec)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


def resolved(place: object, what: str) -> Sharding:
    """Return a sharding; that of a specification is over the mesh in use. Raises BadArgument."""
    if isinstance(place, Sharding):
        return place
    meshes = MESHES.get()
    if isinstance(place, PartitionSpec) and meshes:
        mesh = meshes[-1]
        made = mesh if isinstance(mesh, Mesh) else cast("_Abstract", mesh).on_devices()
        return NamedSharding(made, place)
    raise BadArgument(
        f"{what} takes a sharding",
        expected="a Sharding, or under `set_mesh(mesh)` a PartitionSpec",
        found=f"{type(place).__name__}: {place!r:.60}",
        remedy="write `NamedSharding(mesh, P('x'))`",
    )


class _Abstract(Protocol):
    def on_devices(self) -> Mesh: ...


@memoize(maxsize=4096)
def _named_placement(mesh: Mesh, spec: PartitionSpec, ndim: int) -> xla.Placement | None:
    if not mesh.has_devices or len(devices()) == 1:
        return None
    entries = spec.spec
    check_spec(entries, mesh.axes, ndim, "the array", "")
    order = [mesh.axis_names.index(name) for name in names_in(entries)]
    rest = [i for i in range(len(mesh.axes)) if i not in order]
    positions = np.arange(mesh.size).reshape(mesh.axis_sizes).transpose([*order, *rest])
    tiles = tuple(blocks(entries, mesh.axes, ndim))
    rows = np.sort(positions.reshape(prod(tiles), -1), axis=1)
    return xla.placement_over(tuple(mesh.devices.flat), tiles, tuple(map(tuple, rows.tolist())))


def sharding_over(mesh: Mesh, place: xla.Placement) -> NamedSharding | None:
    """Return the sharding over a mesh that has a placement, or None."""
    rows = {k: i for i, having in enumerate(place.parts) for k in having}
    tile = np.array(np.unravel_index([rows[k] for k in range(mesh.size)], place.tiles or (1,)))
    coordinates = tile.reshape(len(tile), *mesh.axis_sizes)
    # A mesh axis divides the dimension along which its second device has another part.
    steps: dict[int, list[tuple[int, str]]] = {}
    for i, axis in enumerate(mesh.axes):
        if axis.size > 1:
            first, second = (
                coordinates.take(n, i + 1).reshape(len(tile), -1)[:, 0] for n in (0, 1)
            )
            for d in np.flatnonzero(second - first):
                steps.setdefault(int(d), []).append((int(second[d] - first[d]), axis.name))
    entries = [
        tuple([name for _, name in sorted(steps.get(d, ()), reverse=True)]) or None
        for d in range(len(place.tiles))
    ]
    while entries and entries[-1] is None:
        entries.pop()
    try:
        made = NamedSharding(mesh, PartitionSpec(*entries))
        return made if made.placement(len(place.tiles)) is place else None
    except IllTyped:
        return None


@dataclass(frozen=True)
class GSPMDSharding(Sharding):
    """A placement that XLA chose and that no specification over a mesh describes."""

    place: xla.Placement

    @property
    def device_set(self) -> set[Device]:
        """Return the devices."""
        return set(self.place.devices)

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return self.place.devices

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Return the shape of one device's part. Raises IllTyped where dimensions do not divide."""
        return self.place.shard_shape(integers(global_shape, "shard_shape"))

    def placement(self, ndim: int) -> xla.Placement | None:
        """Return the placement."""
        return self.place

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether every device has the whole array."""
        return self.place.is_replicated

    def __repr__(self) -> str:
        return f"GSPMDSharding({self.place!r})"
