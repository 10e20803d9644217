"""The greatest and least elements, by JAX's names: exact ones where they may be approximate."""

from __future__ import annotations

import math
from typing import Final

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis, static_int
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_float
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import ArrayType
from effax.lax import elementwise as el
from effax.lax.reduce import top_k

__all__ = ["approx_max_k", "approx_min_k"]

_SEARCH: Final = {
    "operand": "array of floats.",
    "k": "number of elements.",
    "reduction_dimension": "axis to select along.",
    "recall_target": "fraction of the elements that must be among those returned; all are.",
    "reduction_input_size_override": "size of the whole axis, where this is a part of it; or -1.",
    "aggregate_to_topk": "whether to return ``k`` elements, and not the candidates for them.",
}
"""Descriptions of the parameters that the functions share."""


@shared_docs(_SEARCH, "Pair of arrays, in descending order: elements, and their indices, int32.")
def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Return the ``k`` greatest elements along an axis, and their indices.

    Raises:
        IllTyped: ``operand`` has no floating dtype.
        BadArgument: ``k`` or ``recall_target`` is out of range.

    >>> lax.approx_max_k(jnp.array([1.0, 5.0, 3.0]), 2)
    (Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32))
    """
    x = as_value(operand, "the operand of approx_max_k")
    axis = plain_axis(reduction_dimension, x.ndim, "approx_max_k")
    count = static_int(k, "k of approx_max_k")
    _check(x.type, axis, count, recall_target)
    if not aggregate_to_topk:
        count = _candidates(
            x.shape[axis], x.ndim, count, recall_target, reduction_input_size_override
        )
    return top_k(x, min(count, x.shape[axis]), axis=axis)


@shared_docs(_SEARCH, "Pair of arrays, in ascending order: elements, and their indices, int32.")
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Return the ``k`` least elements along an axis, and their indices.

    Raises:
        IllTyped: ``operand`` has no floating dtype.
        BadArgument: ``k`` or ``recall_target`` is out of range.

    >>> lax.approx_min_k(jnp.array([1.0, 5.0, 3.0]), 2)
    (Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32))
    """
    values, places = approx_max_k(
        el.neg(operand),
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )
    return el.neg(values), places


def _check(type_: ArrayType, axis: int, k: int, recall: float) -> None:
    if not is_float(type_.dtype):
        raise IllTyped("approx_max_k and approx_min_k take floats", "a float dtype", str(type_))
    if not (1 <= k <= type_.shape[axis] and 0 < recall <= 1):
        raise BadArgument(
            "approx_max_k or approx_min_k is out of range",
            expected=f"k from 1 to {type_.shape[axis]}, a recall from 0 to 1",
            found=f"k={k}, recall_target={recall}",
        )


_TILE: Final = 128


def _candidates(size: int, rank: int, k: int, recall: float, override: int) -> int:
    """Return the number of elements of which the greatest include most of the ``k`` greatest.

    It is that of XLA on TPU: the maxima of as many bins as the recall needs, in whole tiles.

    Source: Chern et al., "TPU-KNN: k nearest neighbor search at peak FLOP/s" (2022).
    """
    tile = _TILE * 8 if rank == 1 else _TILE
    if size <= tile or k == 1:
        return min(size, tile)
    bins = max(int((1 - k) / math.log(recall)) if recall < 1 else size, tile)
    whole = override if override >= 0 else size
    halvings = (whole // bins).bit_length() - 1
    if halvings <= 0:
        return size
    halvings = min(halvings, (size // tile - 1).bit_length())
    return tile * math.ceil(math.ceil(size / tile) / (1 << halvings))
