"""``shard_map`` with the arguments of its earlier form."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from effax.api.shard_map import shard_map as _shard_map
from effax.arrays.sharding import Mesh
from effax.ir.errors import BadArgument

__all__ = ["shard_map"]

P = ParamSpec("P")
R = TypeVar("R")


def shard_map(
    f: Callable[P, R],
    mesh: Mesh,
    in_specs: object,
    out_specs: object,
    check_rep: bool = True,
    auto: frozenset[str] = frozenset(),
) -> Callable[P, R]:
    """Return ``f`` on each device of a mesh, as ``jax.shard_map``.

    Args:
        f: a function of the parts of arrays on one device.
        mesh: the devices.
        in_specs: the division of the arguments.
        out_specs: the division of the results.
        check_rep: whether results are checked to be the same along axes that ``out_specs`` lacks.
        auto: must be empty: ``f`` runs along all axes of the mesh.

    Raises:
        BadArgument: ``auto`` has axes.

    >>> from effax.experimental.shard_map import shard_map
    >>> mesh, spec = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec("x")
    >>> shard_map(lambda x: x * 2, mesh, spec, spec)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if auto:
        raise BadArgument(
            "shard_map: no axis is left to the compiler",
            expected="auto=frozenset()",
            found=str(auto),
        )
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
