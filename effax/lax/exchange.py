"""Collectives that are several of others: places of extrema, and ragged exchanges."""

from __future__ import annotations

from typing import TypeVar

from effax import tree
from effax.arrays.operators import ops
from effax.arrays.shared_docs import shared_docs
from effax.lax.parallel import AxisName, axis_index, axis_size, pmax, pmin

__all__ = ["pargmax", "pargmin"]

T = TypeVar("T")

_PLACES = {"x": "tree of arrays.", "axis_name": "name of an axis, or several names."}


@shared_docs(_PLACES, "Tree like ``x``, int32.")
def pargmax(x: T, axis_name: AxisName) -> T:
    """Return the first index along a named axis at which the maximum is.

    >>> jax.vmap(lambda x: lax.pargmax(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return _first_index(x, pmax(x, axis_name), axis_name)


@shared_docs(_PLACES, "Tree like ``x``, int32.")
def pargmin(x: T, axis_name: AxisName) -> T:
    """Return the first index along a named axis at which the minimum is.

    >>> jax.vmap(lambda x: lax.pargmin(x, "i"), axis_name="i")(jnp.array([2, 1, 3]))
    Array([1, 1, 1], dtype=int32)
    """
    return _first_index(x, pmin(x, axis_name), axis_name)


def _first_index(x: T, extreme: T, axis_name: AxisName) -> T:
    here, beyond = axis_index(axis_name), axis_size(axis_name)
    places: T = tree.map(lambda a, b: ops.where(a == b, here, beyond), x, extreme)
    return pmin(places, axis_name)
