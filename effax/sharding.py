"""Placement of arrays over devices: meshes with named axes, and partition specs."""

from __future__ import annotations

from effax.arrays.sharding import (
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    make_mesh,
)

__all__ = [
    "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding", "make_mesh",
]  # fmt: skip
