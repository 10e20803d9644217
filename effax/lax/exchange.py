"""Collectives that are several of others: places of extrema, and ragged exchanges."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from effax import tree
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.joining import unstack
from effax.arrays.operators import ops
from effax.arrays.shapes import reshape
from effax.arrays.shared_docs import shared_docs
from effax.lax import elementwise as el
from effax.lax.axis_groups import AxisName, IndexGroups
from effax.lax.creation import iota
from effax.lax.parallel import all_gather, axis_index, axis_size, pmax, pmin

__all__ = ["pargmax", "pargmin", "ragged_all_to_all"]

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


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: IndexGroups = None,
) -> Array:
    """Exchange parts of the first axis: this device's j-th part is sent to device j.

    Args:
        operand: array whose rows are sent.
        output: array that is returned with the rows that are received.
        input_offsets: integers, the first row of each part.
        send_sizes: integers, the number of rows of each part.
        output_offsets: integers, the row of the receiver's output at which each part is placed.
        recv_sizes: integers, the numbers of rows that are received; they follow from the others.
        axis_name: name of an axis, or several names.
        axis_index_groups: groups of positions along the axis of one size, which partition it; parts
            are for the devices of a group. None: one group of all.

    Returns:
        Array like ``output``.

    Raises:
        BadArgument: the groups are no partition into groups of one size.

    >>> def exchange(x, sizes, to):
    ...     return lax.ragged_all_to_all(
    ...         x, jnp.zeros(3, int), jnp.array([0, 1]), sizes, to, sizes, axis_name="i"
    ...     )
    >>> x, sizes = jnp.array([[1, 2, 2], [3, 4, 0]]), jnp.array([[1, 2], [1, 1]])
    >>> jax.vmap(exchange, axis_name="i")(x, sizes, jnp.array([[0, 0], [1, 2]]))
    Array([[1, 3, 0],
           [2, 2, 4]], dtype=int32)
    """
    groups = axis_index_groups
    operands = [
        as_value(x, "an operand of ragged_all_to_all")
        for x in (operand, input_offsets, send_sizes, output_offsets)
    ]
    sent = all_gather(operands, axis_name, axis_index_groups=groups)
    made, me = as_value(output, "the output of ragged_all_to_all"), axis_index(axis_name)
    if groups is not None:
        at = {i: k for group in groups for k, i in enumerate(group)}
        me = as_value(np.array([at[i] for i in range(len(at))], np.int32))[me]
    rows = iota("int32", made.shape[0])
    for rows_of, *given in zip(*[unstack(x) for x in sent], strict=True):
        start, size, place = (el.convert_element_type(x[me], "int32") for x in given)
        here = rows - place
        taken = rows_of[el.clamp(0, start + here, rows_of.shape[0] - 1)]
        mask = reshape((here >= 0) & (here < size), (-1,) + (1,) * (made.ndim - 1))
        made = ops.where(mask, taken, made)
    return made
