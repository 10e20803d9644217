"""Factorizations of matrices by JAX's names in ``lax.linalg``."""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to
from effax.ir.dtypes import INT32
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Iota, ReduceSum
from effax.lax import elementwise as el
from effax.lax.whiles import fori_loop

__all__ = ["lu_pivots_to_permutation"]


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows after exchanges of row k with row ``pivots[k]``, in sequence.

    Args:
        pivots: integers of shape (..., k).
        permutation_size: number of rows, k or more.

    Returns:
        int32 array of shape (..., permutation_size).

    Raises:
        BadArgument: fewer rows than pivots.
        IllTyped: ``pivots`` has no axes.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1, 2]), 3)
    Array([2, 1, 0], dtype=int32)
    """
    given = el.convert_element_type(as_value(pivots, "the pivots"), INT32)
    if given.ndim < 1:
        raise IllTyped("pivots are vectors", "one axis or more", str(given.type))
    *batch, count = given.shape
    if permutation_size < count:
        expected = f"a size of at least {count}"
        raise BadArgument("there are more pivots than rows", expected, str(permutation_size))
    shape = (*batch, permutation_size)
    places = bind1(Iota(INT32, shape, len(batch)))

    zero = as_value(np.int32(0), "zero")

    def at(x: Array, k: Array) -> Array:
        return broadcast_to(x[..., k][..., None], shape)

    def exchanged(k: Array, order: Array) -> Array:
        k = el.convert_element_type(k, INT32)
        there = at(given, k)
        mine = at(order, k)
        chosen = el.eq(places, there)
        kept = el.select(chosen, order, broadcast_to(zero, shape))
        other = broadcast_to(bind1(ReduceSum((len(batch),)), kept)[..., None], shape)
        order = el.select(chosen, mine, order)
        return el.select(el.eq(places, k), other, order)

    return fori_loop(0, count, exchanged, places)
