"""How arrays are divided over devices: meshes with named axes, and specifications."""

from __future__ import annotations

from effax.arrays.sharding import Mesh, NamedSharding, P, PartitionSpec, make_mesh

__all__ = ["Mesh", "NamedSharding", "P", "PartitionSpec", "make_mesh"]
