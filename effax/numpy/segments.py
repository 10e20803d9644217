"""Reductions of segments: rows of an array that have one number are combined."""

from __future__ import annotations

from typing import Literal

import effax.numpy as jnp
from effax.arrays.array import ArrayLike
from effax.arrays.device_array import Array, as_value
from effax.ir.errors import IllTyped
from effax.ir.prims.reduce import greatest, lowest

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """``out[k]``: the sum of ``data[i]`` over all i with ``segment_ids[i] == k``; 0 of none.

    Args:
        data: an array, whose leading axis is that of ``segment_ids``.
        segment_ids: integers; rows with one that is no segment, negative ones included, are left
            out.
        num_segments: the length of the result; one more than the greatest number where it is
            None, which is possible outside of ``jit`` only.
        indices_are_sorted: a promise that nothing depends on.
        unique_indices: the same.

    Raises:
        IllTyped: the numbers are no integers, or not along the leading axes of ``data``.
        ConcretizationError: ``num_segments`` is None and the numbers are not known.
    """
    return _segments("sum", data, segment_ids, num_segments)


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """The product of the rows of each segment; 1 of none. See :func:`segment_sum`."""
    return _segments("prod", data, segment_ids, num_segments)


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """The greatest of the rows of each segment; of none, the least number that there is.

    See :func:`segment_sum`.
    """
    return _segments("max", data, segment_ids, num_segments)


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """The least of the rows of each segment; of none, the greatest number that there is.

    See :func:`segment_sum`.
    """
    return _segments("min", data, segment_ids, num_segments)


def _segments(
    how: Literal["sum", "prod", "max", "min"],
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None,
) -> Array:
    x, ids = as_value(data, "data"), as_value(segment_ids, "segment_ids")
    if not jnp.issubdtype(ids.dtype, jnp.integer) or x.shape[: ids.ndim] != ids.shape:
        raise IllTyped(
            f"segment_{how} takes one integer a row of the data",
            expected=f"integers of shape {x.shape[:1]}",
            found=f"{ids.dtype}{list(ids.shape)}, for data of shape {x.shape}",
        )
    if num_segments is None:
        num_segments = int(jnp.max(ids)) + 1 if ids.size else 0
    shape = (num_segments, *x.shape[ids.ndim :])
    # A negative position would count from the end; a narrow dtype may not have the length.
    places = jnp.where(ids < 0, num_segments, ids.astype(int))
    match how:
        case "sum":
            return jnp.zeros(shape, x.dtype).at[places].add(x, mode="drop")
        case "prod":
            return jnp.ones(shape, x.dtype).at[places].multiply(x, mode="drop")
        case "max":
            return jnp.full(shape, lowest(x.dtype), x.dtype).at[places].max(x, mode="drop")
        case "min":
            return jnp.full(shape, greatest(x.dtype), x.dtype).at[places].min(x, mode="drop")
