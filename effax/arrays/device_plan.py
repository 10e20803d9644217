"""The devices of a call, and the placement of its arguments and results on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from effax.arrays.array import Array
from effax.arrays.mesh import MESHES, Mesh
from effax.arrays.placed_array import PlacedArray, PlacedType, placed_type
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import Ref
from effax.arrays.sharding import (
    GSPMDSharding,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    sharding_over,
)
from effax.ir.axes import Axes
from effax.ir.errors import BadArgument
from effax.ir.memo import memoize
from effax.ir.prims.shard import grids_in
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType
from effax.lowering import xla
from effax.lowering.layout import DeviceLayout, MeshPlace
from effax.lowering.xla import Device, Placement

Devices = tuple[Device, ...]

_WHOLE: Final = PartitionSpec()


class DevicePlan(NamedTuple):
    """The devices of a call.

    Attributes:
        layout: the devices, and the placements that arguments and options decide.
        meshes: the meshes that name the placements of results.
        outs: the shardings of results that options decide.
    """

    layout: DeviceLayout
    meshes: tuple[Mesh, ...]
    outs: tuple[Sharding | None, ...]

    def result_types(
        self, types: Sequence[ArrayType], places: Sequence[Placement]
    ) -> list[PlacedType]:
        """Return the types of results with the shardings that the compiler chose."""
        return [
            placed_type(t, self.sharding(p, len(t.shape)) if s is None or _is_free(s) else s)
            for t, p, s in zip(types, places, self.outs, strict=False)
        ]

    def sharding(self, place: Placement, ndim: int) -> Sharding:
        """Return the sharding of arrays of ``ndim`` axes with a placement."""
        return sharding_of(place, self.meshes, ndim)


def _is_free(sharding: Sharding) -> bool:
    return isinstance(sharding, NamedSharding) and bool(sharding.spec.free)


@memoize(maxsize=4096)
def sharding_of(place: Placement, meshes: tuple[Mesh, ...], ndim: int) -> Sharding:
    """Return a sharding with a placement, over one of the meshes where one describes it."""
    if len(place.devices) == 1:
        return SingleDeviceSharding(place.devices[0])
    whole = xla.placement_over(place.devices, place.tiles[:ndim], place.parts)
    named = (sharding_over(mesh, whole) for mesh in meshes)
    return next((s for s in named if s is not None), GSPMDSharding(whole))


def mesh_of(axes: Axes, numbers: Sequence[int]) -> Mesh:
    """Return the mesh of devices that a program names."""
    found = {d.id: d for d in xla.devices()}
    grid = np.empty(len(numbers), object)
    grid[:] = [found[i] for i in numbers]
    return Mesh(grid.reshape([a.size for a in axes]), [a.name for a in axes])


def device_plan(
    jaxpr: Jaxpr,
    operands: Sequence[object],
    ins: Sequence[Sharding | None],
    outs: Sequence[Sharding | None],
    name: str,
) -> DevicePlan | None:
    """Return the devices of a call; None where the first one runs it, as any plain program.

    Args:
        jaxpr: the program.
        operands: its operands, or their types.
        ins: the shardings of the last operands that options decide, or nothing.
        outs: those of the results.
        name: the name of the call.

    Raises:
        BadArgument: arguments, options and the meshes of the program are on different devices.
    """
    if xla.number_of_devices() == 1:
        return None
    own = [_own_sharding(x) for x in operands]
    wanted = [None] * (len(own) - len(ins)) + [_over_devices(s) for s in ins]
    found = [(jaxpr.name_of(i), s) for i, s in enumerate(own) if s is not None]
    for i, (s, t) in enumerate(zip(own, wanted, strict=True)):
        if s is not None and t is not None:
            _check_same(jaxpr.name_of(i), s, t, len(jaxpr.in_types[i].shape), name)
    results = [_over_devices(s) for s in outs or [None] * len(jaxpr.outs)]
    found += [("in_shardings", s) for s in wanted if s is not None]
    found += [("out_shardings", s) for s in results if s is not None]
    grids = [mesh_of(*grid) for grid in grids_in(jaxpr)]
    found += [("a mesh of the program", NamedSharding(m, _WHOLE)) for m in grids]
    in_use = [m for m in MESHES.get()[-1:] if isinstance(m, Mesh) and m.has_devices]
    if not found:
        found = [("the mesh in use", NamedSharding(m, _WHOLE)) for m in in_use]
    if not found:
        return None
    devices = _common(found, name)
    shardings = [s for _, s in found]
    meshes = tuple(dict.fromkeys([s.mesh for s in shardings if isinstance(s, NamedSharding)]))
    places = [_place(s if s is not None else t) for s, t in zip(own, wanted, strict=True)]
    if meshes and xla.spanning(devices) is not None:
        # What has no placement is whole in each process, which can then read a reference again.
        whole = MeshPlace(meshes[0].axes, ())
        pairs = zip(own, places, strict=True)
        places = [whole if s is None and place is None else place for s, place in pairs]
    layout = DeviceLayout(devices, tuple(places), tuple(map(_place, results)))
    return DevicePlan(layout, meshes, tuple(results))


def _own_sharding(x: object) -> Sharding | None:
    """Return the sharding of an argument that decides where the call runs."""
    if isinstance(x, PlacedArray | PlacedRef):
        return x.sharding
    if isinstance(x, Array | Ref):
        return None
    given = getattr(x, "sharding", None)
    return _over_devices(given) if isinstance(given, Sharding) else None


def _over_devices(sharding: Sharding | None) -> Sharding | None:
    if sharding is None or (isinstance(sharding, NamedSharding) and not sharding.mesh.has_devices):
        return None
    return sharding


def _place(sharding: Sharding | None) -> MeshPlace | None:
    if isinstance(sharding, NamedSharding):
        return MeshPlace(sharding.mesh.axes, sharding.spec.spec, sharding.spec.free)
    return None


def _check_same(what: str, own: Sharding, wanted: Sharding, ndim: int, name: str) -> None:
    if own.placement(ndim) is not wanted.placement(ndim):
        raise BadArgument(
            f"{name}: {what} has another sharding than in_shardings",
            expected=repr(wanted),
            found=repr(own),
            remedy="move it first: `device_put(x, sharding)`; or leave in_shardings out",
        )


def _common(found: Sequence[tuple[str, Sharding]], name: str) -> Devices:
    """Return the devices of all shardings. Raises BadArgument where they differ."""
    groups: dict[Devices, str] = {}
    for what, sharding in found:
        groups.setdefault(sharding._device_assignment, what)
    if len(groups) > 1:
        shown = [f"{what} on {_shown(devices)}" for devices, what in groups.items()]
        raise BadArgument(
            f"{name}: arguments are on incompatible devices",
            expected="arguments, options and meshes on the same devices, in one order",
            found="; ".join(shown),
            remedy="move one: `device_put(x, sharding)`",
        )
    return next(iter(groups))


def _shown(devices: Iterable[Device]) -> str:
    return f"devices {[d.id for d in devices]}"
