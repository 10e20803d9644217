"""Sharding of arrays over devices: meshes with named axes, and partition specifications.

A mesh is a grid of devices with named axes. The devices do not change the meaning of a program of
``shard_map``, and one device can run a whole mesh, so a mesh may be made of sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Final

import numpy as np

from effax.arrays.argument_checks import axis_names_of, integers
from effax.ir.axes import Axes, Axis
from effax.ir.errors import BadArgument
from effax.ir.partition import Spec, local_type, spec_text
from effax.ir.types import Shape, array_type
from effax.lowering.xla import Device, devices

__all__ = [
    "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "make_mesh",
]  # fmt: skip


class AxisType(Enum):
    """Kinds of axes of a mesh, by the origin of shardings; they change no value."""

    Auto = auto()
    Explicit = auto()
    Manual = auto()

    def __repr__(self) -> str:
        return self.name


class Mesh:
    """A grid of devices whose axes have names.

    Args:
        devices: an array of devices (``effax.devices()``, in a NumPy array or nested lists), or the
            sizes of the axes: then the devices are numbers.
        axis_names: one name an axis.
        axis_types: one type an axis, or one for all; ``AxisType.Auto`` if left out.

    Raises:
        BadArgument: the numbers of names and axes differ, a name is invalid, or an axis is empty.
    """

    __slots__ = ("_axes", "_axis_types", "_devices")

    _axes: Axes
    _axis_types: tuple[AxisType, ...]
    _devices: np.ndarray

    def __init__(
        self,
        devices: object,
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        grid = _grid(devices)
        names = axis_names_of(axis_names, "Mesh: axis_names") if grid.ndim else ()
        if len(names) != grid.ndim:
            raise BadArgument(
                "a mesh has one name for each of its axes",
                expected=f"{grid.ndim} names",
                found=repr(axis_names),
            )
        if not grid.size:
            raise BadArgument(
                "a mesh has at least one device along each axis",
                expected="sizes of at least 1",
                found=str(grid.shape),
            )
        grid.setflags(write=False)
        object.__setattr__(self, "_devices", grid)
        axes = tuple([Axis(name, n) for name, n in zip(names, grid.shape, strict=True)])
        object.__setattr__(self, "_axes", axes)
        object.__setattr__(self, "_axis_types", _axis_types(axis_types, len(axes)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a mesh is immutable: cannot set {name}")

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """Return the types of the axes."""
        return self._axis_types

    @property
    def empty(self) -> bool:
        """Return whether the mesh has no axes."""
        return not self._axes

    @property
    def are_all_axes_auto(self) -> bool:
        """Return whether every axis is of ``AxisType.Auto``."""
        return set(self._axis_types) <= {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Explicit``."""
        return set(self._axis_types) == {AxisType.Explicit}

    @property
    def are_all_axes_manual(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Manual``."""
        return set(self._axis_types) == {AxisType.Manual}

    @property
    def axes(self) -> Axes:
        """Return the names and sizes of the axes."""
        return self._axes

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Return the names of the axes."""
        return tuple([axis.name for axis in self._axes])

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the axes."""
        return tuple([axis.size for axis in self._axes])

    @property
    def shape(self) -> dict[str, int]:
        """Return the sizes of the axes, by name."""
        return {axis.name: axis.size for axis in self._axes}

    @property
    def devices(self) -> np.ndarray:
        """Return the grid of the devices, or of their numbers."""
        return self._devices

    @property
    def size(self) -> int:
        """Return the number of devices."""
        return int(self._devices.size)

    def __enter__(self) -> Mesh:
        """Use the mesh until the end of the context, as :func:`effax.sharding.set_mesh` does."""
        MESHES.set((*MESHES.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        MESHES.set(MESHES.get()[:-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        same = list(self._devices.flat) == list(other._devices.flat)
        return self._axes == other._axes and self._axis_types == other._axis_types and same

    def __hash__(self) -> int:
        return hash(self._axes)

    def __reduce__(self) -> tuple[object, ...]:
        return (Mesh, (self.axis_sizes, self.axis_names, self.axis_types))

    def __repr__(self) -> str:
        shown = ", ".join(f"{axis.name!r}: {axis.size}" for axis in self._axes)
        return f"Mesh({shown})"


MESHES: Final[ContextVar[tuple[object, ...]]] = ContextVar("meshes", default=())
"""The meshes in use, of which the last one counts."""


def _axis_types(types: AxisType | Sequence[AxisType] | None, n_axes: int) -> tuple[AxisType, ...]:
    """Return the type of each axis. Raises BadArgument for another number of them."""
    found = (
        (types or AxisType.Auto,) * n_axes
        if types is None or isinstance(types, AxisType)
        else types
    )
    if len(found) != n_axes or not all(isinstance(x, AxisType) for x in found):
        raise BadArgument(
            "a mesh has one type for each of its axes",
            expected=f"{n_axes} members of AxisType",
            found=repr(types),
        )
    return tuple(found)


def _grid(devices: object) -> np.ndarray:
    """Return the grid of devices; sizes mean numbered devices."""
    if isinstance(devices, int | np.integer) or (
        isinstance(devices, tuple | list) and all(isinstance(n, int | np.integer) for n in devices)
    ):
        sizes = integers(devices, "Mesh: sizes of axes")
        if any(n < 1 for n in sizes):
            raise BadArgument(
                "a mesh has at least one device along each axis",
                expected="sizes of at least 1",
                found=repr(sizes),
            )
        return np.arange(prod(sizes)).reshape(sizes)
    return np.array(devices, dtype=object)


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[object] | None = None,
) -> Mesh:
    """Return a mesh of the given sizes.

    Args:
        axis_shapes: the sizes of the axes.
        axis_names: one name an axis.
        axis_types: one type an axis; ``AxisType.Auto`` if left out.
        devices: its devices, in order; None numbers them.

    Raises:
        BadArgument: as for :class:`Mesh`; there are too few devices.
    """
    sizes = integers(axis_shapes, "make_mesh: axis_shapes")
    if devices is None:
        return Mesh(sizes, axis_names, axis_types)
    if len(devices) < prod(sizes):
        raise BadArgument(
            "make_mesh: there are too few devices",
            expected=f"at least {prod(sizes)}",
            found=str(len(devices)),
            remedy="leave `devices` out: all of the mesh then runs on one device",
        )
    grid = np.empty(prod(sizes), dtype=object)
    grid[:] = list(devices)[: prod(sizes)]
    return Mesh(grid.reshape(sizes), axis_names, axis_types)


class PartitionSpec:
    """The axes of a mesh over which each dimension of an array is divided.

    ``P('x', None, ('y', 'z'))``: the first dimension over ``x``, the second over none, the third
    over ``y`` and ``z``, of which ``z`` varies fastest. Dimensions left out are not divided.
    """

    __slots__ = ("_entries",)

    _entries: tuple[str | tuple[str, ...] | None, ...]

    def __init__(self, *entries: str | Sequence[str] | None) -> None:
        object.__setattr__(self, "_entries", tuple([_entry(e) for e in entries]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a spec is immutable: cannot set {name}")

    @property
    def spec(self) -> Spec:
        """Return the names for each dimension."""
        return tuple(
            [() if e is None else (e,) if isinstance(e, str) else e for e in self._entries]
        )

    def __iter__(self) -> Iterator[str | tuple[str, ...] | None]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> str | tuple[str, ...] | None:
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
        return spec_text(self.spec)


P = PartitionSpec


def _entry(entry: object) -> str | tuple[str, ...] | None:
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

    @property
    def addressable_devices(self) -> set[Device]:
        """Return the devices of this process, which are all of them."""
        return self.device_set

    @property
    def num_devices(self) -> int:
        """Return the number of devices."""
        return len(self.device_set)

    @property
    def is_fully_addressable(self) -> bool:
        """Return True: every device is of this process."""
        return True

    @property
    def memory_kind(self) -> str:
        """Return the kind of the devices' memory."""
        return "device"

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return whether both place arrays of ``ndim`` axes alike."""
        if self.is_fully_replicated and other.is_fully_replicated:
            return self.device_set == other.device_set
        return self == other and ndim >= 0


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
        found = set(self.mesh.devices.flat)
        return found if all(isinstance(x, Device) for x in found) else {devices()[0]}

    @property
    def num_devices(self) -> int:
        """Return the number of devices of the mesh."""
        return self.mesh.size

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Return the shape of one device's part. Raises IllTyped where dimensions do not divide."""
        shape = integers(global_shape, "shard_shape")
        whole = array_type(shape, "bool")
        return local_type(whole, self.spec.spec, self.mesh.axes, "the array").shape

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether every device has the whole array."""
        sizes = self.mesh.shape
        return all(sizes.get(name, 1) == 1 for names in self.spec.spec for name in names)
