"""Reductions of segments, the rows of an array with one id."""

from __future__ import annotations

from typing import Final, Literal

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.index_modes import ModeLike
from effax.arrays.placed import on_device
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import IllTyped
from effax.ir.prims.reduce import greatest, lowest

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


_SEGMENTS: Final = {
    "data": "array whose leading axes are those of ``segment_ids``.",
    "segment_ids": "integers; rows with an id out of range are ignored.",
    "num_segments": "length of the result; ``max(segment_ids) + 1`` by default.",
    "indices_are_sorted": "unused promise.",
    "unique_indices": "unused promise.",
    "bucket_size": "ignored; rows are not combined in buckets.",
    "out_sharding": "sharding of the result.",
    "mode": 'treatment of ids out of range: "drop" ignores them, "clip" clamps them.',
}


@shared_docs(_SEGMENTS, "Array of shape (num_segments, ...); for empty segments, 0.")
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: ModeLike = None,
    out_sharding: object = None,
) -> Array:
    """Return the sum of the rows of each segment: ``out[k] = sum(data[segment_ids == k])``.

    Raises:
        IllTyped: ids are not integers, or not along the leading axes of ``data``.
        ConcretizationError: ``segment_ids`` is traced and there is no ``num_segments``.

    >>> jax.ops.segment_sum(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([4, 2], dtype=int32)
    """
    made = _segments("sum", data, segment_ids, num_segments, mode)
    return on_device(made, out_sharding, "segment_sum")


@shared_docs(_SEGMENTS, "Array of shape (num_segments, ...); for empty segments, 1.")
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: ModeLike = None,
    out_sharding: object = None,
) -> Array:
    """Return the product of the rows of each segment.

    Raises:
        IllTyped: ids are not integers, or not along the leading axes of ``data``.
        ConcretizationError: ``segment_ids`` is traced and there is no ``num_segments``.

    >>> jax.ops.segment_prod(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    made = _segments("prod", data, segment_ids, num_segments, mode)
    return on_device(made, out_sharding, "segment_prod")


@shared_docs(
    _SEGMENTS,
    "Array of shape (num_segments, ...); for empty segments, the lowest value of the dtype.",
)
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: ModeLike = None,
    out_sharding: object = None,
) -> Array:
    """Return the maximum of the rows of each segment.

    Raises:
        IllTyped: ids are not integers, or not along the leading axes of ``data``.
        ConcretizationError: ``segment_ids`` is traced and there is no ``num_segments``.

    >>> jax.ops.segment_max(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    made = _segments("max", data, segment_ids, num_segments, mode)
    return on_device(made, out_sharding, "segment_max")


@shared_docs(
    _SEGMENTS,
    "Array of shape (num_segments, ...); for empty segments, the greatest value of the dtype.",
)
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: ModeLike = None,
    out_sharding: object = None,
) -> Array:
    """Return the minimum of the rows of each segment.

    Raises:
        IllTyped: ids are not integers, or not along the leading axes of ``data``.
        ConcretizationError: ``segment_ids`` is traced and there is no ``num_segments``.

    >>> jax.ops.segment_min(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([1, 2], dtype=int32)
    """
    made = _segments("min", data, segment_ids, num_segments, mode)
    return on_device(made, out_sharding, "segment_min")


def _segments(
    how: Literal["sum", "prod", "max", "min"],
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None,
    mode: ModeLike,
) -> Array:
    x, ids = as_value(data, "data"), as_value(segment_ids, "segment_ids")
    if not jnp.issubdtype(ids.dtype, jnp.integer) or x.shape[: ids.ndim] != ids.shape:
        raise IllTyped(
            f"segment_{how} takes one integer per row of the data",
            expected=f"integers of shape {x.shape[:1]}",
            found=f"{ids.dtype}{list(ids.shape)}, for data of shape {x.shape}",
        )
    if num_segments is None:
        num_segments = int(jnp.max(ids)) + 1 if ids.size else 0
    shape = (num_segments, *x.shape[ids.ndim :])
    # A negative index counts from the end; a narrow dtype may not represent the length.
    places = jnp.where(ids < 0, num_segments, ids.astype(int))
    outside = mode or "drop"
    match how:
        case "sum":
            return jnp.zeros(shape, x.dtype).at[places].add(x, mode=outside)
        case "prod":
            return jnp.ones(shape, x.dtype).at[places].multiply(x, mode=outside)
        case "max":
            return jnp.full(shape, lowest(x.dtype), x.dtype).at[places].max(x, mode=outside)
        case "min":
            return jnp.full(shape, greatest(x.dtype), x.dtype).at[places].min(x, mode=outside)
