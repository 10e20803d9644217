"""Meshes: grids of devices whose axes have names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from enum import Enum, auto
from math import prod
from typing import Final

import numpy as np

from effax.arrays.argument_checks import axis_names_of, integers
from effax.arrays.config import config
from effax.arrays.devices_in_use import in_use
from effax.ir.axes import Axes, Axis
from effax.ir.errors import BadArgument
from effax.ir.prims.shard import Grid
from effax.ir.types import Shape
from effax.lowering import xla
from effax.lowering.xla import Device


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

    __slots__ = ("_axes", "_axis_types", "_devices", "_has_devices")

    _axes: Axes
    _has_devices: bool
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
        object.__setattr__(self, "_has_devices", all(isinstance(x, Device) for x in grid.flat))

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
    def has_devices(self) -> bool:
        """Return whether the grid has devices, and not numbers, which one device runs."""
        return self._has_devices

    @property
    def grid(self) -> Grid | None:
        """Return the axes and the numbers of the devices; None where one device runs them all."""
        if not self._has_devices or xla.number_of_devices() == 1:
            return None
        in_use.several_devices = True
        return self._axes, tuple([d.id for d in self._devices.flat])

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Return the mesh without its devices."""
        return abstract(self)

    @property
    def local_devices(self) -> list[object]:
        """Return the devices of this process, in order."""
        here = xla.this_process()
        return [
            d for d in self._devices.flat if not isinstance(d, Device) or d.process_index == here
        ]

    @property
    def size(self) -> int:
        """Return the number of devices."""
        return int(self._devices.size)

    def __enter__(self) -> Mesh:
        """Use the mesh until the end of the context, as :func:`effax.sharding.set_mesh` does."""
        use_meshes((*MESHES.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        use_meshes(MESHES.get()[:-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        same = list(self._devices.flat) == list(other._devices.flat)
        return self._axes == other._axes and self._axis_types == other._axis_types and same

    def __hash__(self) -> int:
        return hash(self._axes)

    def __reduce__(self) -> tuple[object, ...]:
        ids = [d.id for d in self._devices.flat] if self._has_devices else None
        return (_restored, (self.axis_sizes, self.axis_names, self.axis_types, ids))

    def __repr__(self) -> str:
        shown = ", ".join(f"{axis.name!r}: {axis.size}" for axis in self._axes)
        return f"Mesh({shown})"


MESHES: Final[ContextVar[tuple[object, ...]]] = ContextVar("meshes", default=())
"""The meshes in use, of which the last one counts."""


def use_meshes(meshes: tuple[object, ...]) -> None:
    """Use meshes from now on, of which the last one counts."""
    MESHES.set(meshes)
    last = meshes[-1] if meshes else None
    of_devices = isinstance(last, Mesh) and last.grid is not None
    config.set_mesh((last, last.grid) if of_devices and isinstance(last, Mesh) else None)


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
        devices: its devices, in order; by default those of the program, as far as there are
            enough and several, else numbers: one device then runs all of the mesh.

    Raises:
        BadArgument: as for :class:`Mesh`; there are too few devices.
    """
    sizes = integers(axis_shapes, "make_mesh: axis_shapes")
    if devices is None:
        if not 1 < xla.number_of_devices() >= prod(sizes):
            return Mesh(sizes, axis_names, axis_types)
        devices = xla.devices()
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


def _restored(
    sizes: Shape, names: Sequence[str], types: Sequence[AxisType], ids: Sequence[int] | None
) -> Mesh:
    """Return a mesh of the devices with these numbers. Raises BadArgument for an absent one."""
    if ids is None:
        return Mesh(sizes, names, types)
    found = {d.id: d for d in xla.devices()}
    absent = [i for i in ids if i not in found]
    if absent:
        raise BadArgument(
            "a mesh has devices that this process does not have",
            expected=f"numbers among {sorted(found)}",
            found=str(absent),
        )
    return make_mesh(sizes, names, types, devices=[found[i] for i in ids])


class AbstractMesh:
    """The names and sizes of a mesh's axes, without devices.

    Args:
        axis_sizes: the sizes of the axes.
        axis_names: one name an axis.
        axis_types: one type an axis, or one for all; ``AxisType.Auto`` if left out.

    Raises:
        BadArgument: the numbers of sizes, names and types differ.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4)
    """

    __slots__ = ("_devices", "_mesh")

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        sizes = integers(axis_sizes, "AbstractMesh: axis_sizes")
        names = axis_names_of(axis_names, "AbstractMesh: axis_names") if sizes else ()
        self._mesh = Mesh(sizes, names, axis_types)
        self._devices: Mesh | None = None

    def on_devices(self) -> Mesh:
        """Return the mesh that it is made of, else one over devices, as far as there are enough."""
        if self._devices is not None:
            return self._devices
        return make_mesh(self.axis_sizes, self.axis_names, self.axis_types)

    def with_manual(self, names: Collection[str]) -> AbstractMesh:
        """Return the mesh with these axes of ``AxisType.Manual``."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = [AxisType.Manual if name in names else kind for name, kind in pairs]
        made = AbstractMesh(self.axis_sizes, self.axis_names, types)
        made._devices = self._devices
        return made

    def _of_type(self, kind: AxisType) -> tuple[str, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, own in pairs if own is kind])

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Auto``."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Explicit``."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Manual``: those of a ``shard_map`` around."""
        return self._of_type(AxisType.Manual)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Return the names of the axes."""
        return self._mesh.axis_names

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the axes."""
        return self._mesh.axis_sizes

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """Return the types of the axes."""
        return self._mesh.axis_types

    @property
    def shape(self) -> dict[str, int]:
        """Return the sizes of the axes, by name."""
        return self._mesh.shape

    @property
    def size(self) -> int:
        """Return the number of devices that the mesh would have."""
        return self._mesh.size

    @property
    def empty(self) -> bool:
        """Return whether the mesh has no axes."""
        return self._mesh.empty

    @property
    def are_all_axes_auto(self) -> bool:
        """Return whether every axis is of ``AxisType.Auto``."""
        return self._mesh.are_all_axes_auto

    @property
    def are_all_axes_explicit(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Explicit``."""
        return self._mesh.are_all_axes_explicit

    @property
    def are_all_axes_manual(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Manual``."""
        return self._mesh.are_all_axes_manual

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._mesh == other._mesh

    def __hash__(self) -> int:
        return hash(("abstract", self._mesh))

    def __repr__(self) -> str:
        return f"Abstract{self._mesh!r}"


def abstract(mesh: Mesh | AbstractMesh) -> AbstractMesh:
    """Return a mesh without its devices."""
    if isinstance(mesh, AbstractMesh):
        return mesh
    made = AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)
    made._devices = mesh
    return made
