"""Constraints on the sharding of values."""

from __future__ import annotations

from typing import TypeVar, cast

from effax import tree
from effax.arrays.conversion import as_value
from effax.arrays.mesh_context import constrained
from effax.ir.errors import BadArgument
from effax.tree import PyTree

__all__ = ["with_sharding_constraint"]

T = TypeVar("T")


def with_sharding_constraint(x: T, shardings: object) -> T:
    """Return ``x`` with a sharding, inside of functions too, where it changes no value.

    Args:
        x: a tree of arrays.
        shardings: a sharding, or under :func:`effax.sharding.set_mesh` a ``PartitionSpec``; or a
            tree prefix of these.

    Returns:
        Tree of the same arrays.

    Raises:
        BadArgument: an entry is no sharding, or there is no mesh in use for a specification.
        IllTyped: a sharding does not divide an array.

    >>> mesh = effax.make_mesh((1,), ("x",))
    >>> sharding = effax.NamedSharding(mesh, effax.P("x"))
    >>> effax.jit(lambda x: effax.lax.with_sharding_constraint(x * 2, sharding))(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return _constrained(x, shardings, "with_sharding_constraint")


def reshard(xs: T, out_shardings: object) -> T:
    """Return ``xs`` with another sharding.

    Args:
        xs: a tree of arrays.
        out_shardings: as ``shardings`` of :func:`effax.lax.with_sharding_constraint`.

    Raises:
        BadArgument, IllTyped: as there.
    """
    return _constrained(xs, out_shardings, "reshard")


def _constrained(x: T, shardings: object, what: str) -> T:
    leaves, treedef = tree.flatten(cast("PyTree", x))
    try:
        places = tree.broadcast_prefix(shardings, x)
    except ValueError as error:
        raise BadArgument(
            f"{what}: the shardings are not a prefix of the values",
            expected="a Sharding, or a tree of them",
            found=f"{shardings!r:.80} ({error})",
        ) from None
    return cast(
        T,
        tree.unflatten(
            treedef,
            [
                constrained(as_value(x), place, what)
                for x, place in zip(leaves, places, strict=True)
            ],
        ),
    )
