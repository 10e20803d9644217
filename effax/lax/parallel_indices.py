"""Indices along named axes of the extremes."""

from __future__ import annotations

from effax import tree
from effax.arrays.operators import ops
from effax.lax.parallel import AxisName, axis_index, axis_size, pmax, pmin
from effax.tree import PyTree

__all__ = ["pargmax", "pargmin"]


def pargmax(x: PyTree, axis_name: AxisName) -> PyTree:
    """Return the index along named axes of the maximum.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.

    Returns:
        Tree like ``x``, of int32; the least index where several are equal.

    >>> jax.vmap(lambda x: lax.pargmax(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _index_of(x, pmax(x, axis_name), axis_name)


def pargmin(x: PyTree, axis_name: AxisName) -> PyTree:
    """Return the index along named axes of the minimum; see :func:`pargmax`.

    Args:
        x: tree of arrays.
        axis_name: name of an axis, or several names, which act as one axis.

    Returns:
        Tree like ``x``, of int32; the least index where several are equal.

    >>> jax.vmap(lambda x: lax.pargmin(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _index_of(x, pmin(x, axis_name), axis_name)


def _index_of(x: PyTree, found: PyTree, axis_name: AxisName) -> PyTree:
    """Return the least index along named axes at which trees of arrays are equal."""
    place, size = axis_index(axis_name), axis_size(axis_name)
    places = tree.map(lambda a, b: ops.where(ops.equal(a, b), place, size), x, found)
    return pmin(places, axis_name)
