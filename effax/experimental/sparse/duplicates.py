"""The order of the elements of sparse arrays, and the sums of those of equal indices."""

from __future__ import annotations

from typing import cast

import effax.numpy as jnp
from effax.arrays.array import Array
from effax.experimental.sparse.bcoo import BCOO, Parts, each
from effax.numpy.segments import segment_sum

__all__ = ["bcoo_sort_indices", "bcoo_sum_duplicates"]


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return the array with its elements in the order of their indices.

    >>> from effax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [0]])), shape=(2,))
    >>> sparse.bcoo_sort_indices(mat).data
    Array([2., 1.], dtype=float32)
    """

    def one(data: Array, indices: Array) -> Parts:
        if not indices.shape[-1]:
            return data, indices
        order = jnp.lexsort([indices[:, i] for i in reversed(range(indices.shape[-1]))])
        return data[order], indices[order]

    data, indices = each(one, mat.n_batch, mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return the array with one element for each index, in order; padding is at the end.

    Args:
        mat: sparse array.
        nse: number of specified elements; by default that of the different indices, which takes
            known ones.

    Raises:
        ConcretizationError: indices are traced and ``nse`` is None.

    >>> from effax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(2,))
    >>> sparse.bcoo_sum_duplicates(mat).data
    Array([3.], dtype=float32)
    """
    ordered = bcoo_sort_indices(mat)
    sizes = jnp.array(mat._sizes[: mat.n_sparse], mat.indices.dtype)

    def groups(indices: Array) -> Array:
        """Return the number of the group of each index, from 0; padding is in none."""
        inside = jnp.all((indices >= 0) & (indices < sizes), -1)
        first = jnp.concatenate([jnp.ones(1, bool), jnp.any(indices[1:] != indices[:-1], -1)])
        number = jnp.cumsum(first[: inside.shape[0]] & inside) - 1
        return jnp.where(inside, number, inside.shape[0])

    numbers = cast(Array, each(groups, mat.n_batch, ordered.indices))
    if nse is None:
        known = jnp.where(numbers < ordered.nse, numbers, -1)
        nse = int(jnp.max(known, initial=-1)) + 1
    count = nse

    def one(data: Array, indices: Array, number: Array) -> Parts:
        summed = segment_sum(data, number, count)
        padding = jnp.broadcast_to(sizes, (count, sizes.shape[0]))
        return summed, padding.at[number].set(indices, mode="drop")

    data, indices = each(one, mat.n_batch, ordered.data, ordered.indices, numbers)
    return BCOO((data, indices), shape=mat.shape)
