"""Constraints on the placement of values in programs."""

from __future__ import annotations

from effax.arrays.array import Array
from effax.arrays.binding import bind1
from effax.arrays.sharding import NamedSharding, Sharding
from effax.ir.prims import ShardingConstraint


def constrain(x: Array, sharding: Sharding) -> Array:
    """Return a value of a program that is divided as a sharding over several devices says.

    One device runs all other programs, where a sharding changes nothing.
    """
    if not isinstance(sharding, NamedSharding) or sharding.mesh.grid is None:
        return x
    spec = sharding.spec
    return bind1(ShardingConstraint(spec.spec, sharding.mesh.grid, spec.free), x)
