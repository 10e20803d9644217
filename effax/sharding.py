"""Placement of arrays over devices: meshes with named axes, and partition specs."""

from __future__ import annotations

from effax.arrays.mesh_context import (
    AbstractMesh,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from effax.arrays.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    make_mesh,
)
from effax.lax.placement import reshard

__all__ = [
    "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_mesh", "reshard", "set_mesh", "use_abstract_mesh",
]  # fmt: skip
