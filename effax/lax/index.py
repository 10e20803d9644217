"""Slices with dynamic starts, by JAX's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes, plain_axis, plain_shape
from effax.arrays.binding import Operand, bind1
from effax.arrays.conversion import as_value
from effax.arrays.dynamic_span import ds
from effax.arrays.joining import unstack
from effax.arrays.shared_docs import shared_docs
from effax.ir import prims
from effax.ir.dtypes import INT32, family
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.syntax import Lit
from effax.ir.types import array_type
from effax.lax import elementwise as el

__all__ = [
    "ds", "dslice", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "index_take",
]  # fmt: skip

Starts = Array | np.ndarray | Sequence[ArrayLike]

dslice = ds


_SLICE: Final = {
    "operand": "array or scalar.",
    "start_indices": "integer scalars, one per axis.",
    "allow_negative_indices": "whether negative starts count from the end, for all axes or each.",
    "start_index": "integer scalar, clamped so that the window fits.",
    "axis": "axis to index.",
    "index": "integer scalar, clamped to the bounds.",
    "update": "array of the rank and dtype of ``operand``.",
}
"""Descriptions of the parameters that functions share."""


def _start(index: ArrayLike, size: int, wrap: bool) -> Operand:
    """Return the start of a slice; a negative one counts from the end."""
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        plain = int(index)
        return pr.literal(plain + size if wrap and plain < 0 else plain, array_type((), INT32))
    start = as_value(index, "the start of a slice")
    if family(start.dtype) not in ("int", "uint") or start.shape:
        raise IllTyped(
            "the start of a slice is not an integer scalar", "an integer scalar", str(start.type)
        )
    if start.dtype.itemsize < 4:
        start = el.convert_element_type(start, INT32)
    if not wrap or family(start.dtype) == "uint":
        return start
    return el.select(el.lt(start, 0), el.add(start, size), start)


def _starts(starts: Starts, shape: Sequence[int], wrap: bool | Sequence[bool]) -> list[Operand]:
    given = list(unstack(starts)) if isinstance(starts, Array | np.ndarray) else list(starts)
    if len(given) != len(shape):
        raise BadArgument(
            "a dynamic slice takes one start per axis", f"{len(shape)} starts", str(len(given))
        )
    wraps = [wrap] * len(shape) if isinstance(wrap, bool) else list(wrap)
    found = [_start(i, n, w) for i, n, w in zip(given, shape, wraps, strict=True)]
    if len({s.type.dtype for s in found if not isinstance(s, Lit)}) > 1:
        return [s if isinstance(s, Lit) else el.convert_element_type(s, INT32) for s in found]  # type: ignore[arg-type]  # no references
    return found


@shared_docs(_SLICE, "Array of shape ``slice_sizes``.", slice_sizes="static sizes of the window.")
def dynamic_slice(
    operand: ArrayLike,
    start_indices: Starts,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return a window of static sizes; starts are clamped so that it fits.

    Raises:
        BadArgument: the number of starts is not the rank.
        IllTyped: a start is not an integer scalar, or a size exceeds the axis.

    >>> lax.dynamic_slice(jnp.arange(5), (1,), (2,))
    Array([1, 2], dtype=int32)
    """
    x = as_value(operand, "the operand of dynamic_slice")
    starts = _starts(start_indices, x.shape, allow_negative_indices)
    sizes = plain_shape(slice_sizes, "dynamic_slice")
    return bind1(prims.DynamicSlice(sizes), x, *starts)


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return a window along one axis; see :func:`dynamic_slice`.

    Args:
        operand: array or scalar.
        start_index: integer scalar, clamped so that the window fits.
        slice_size: static size of the window.
        axis: axis to slice.
        allow_negative_indices: whether negative starts count from the end, for all axes or each.

    Returns:
        Array with size ``slice_size`` along ``axis``.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    x = as_value(operand, "the operand of dynamic_slice_in_dim")
    place = plain_axis(axis, x.ndim, "dynamic_slice_in_dim")
    starts: list[ArrayLike] = [0] * x.ndim
    sizes = list(x.shape)
    starts[place], sizes[place] = start_index, slice_size
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


@shared_docs(
    _SLICE, "Array of the dtype of ``operand``.", keepdims="whether the axis remains with size 1."
)
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return the slice at an index along an axis.

    >>> lax.dynamic_index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    part = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return part if keepdims else sh.squeeze(part, axis)


@shared_docs(_SLICE, "Array of the shape and dtype of ``operand``.")
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Starts,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return ``operand`` with a window replaced; starts are clamped so that it fits.

    Raises:
        BadArgument: the number of starts is not the rank.
        IllTyped: a start is not an integer scalar, or ``update`` does not fit.

    >>> lax.dynamic_update_slice(jnp.arange(4), jnp.array([9]), (1,))
    Array([0, 9, 2, 3], dtype=int32)
    """
    x, new = as_value(operand, "the operand"), as_value(update, "the update")
    starts = _starts(start_indices, x.shape, allow_negative_indices)
    return bind1(prims.DynamicUpdateSlice(), x, new, *starts)


@shared_docs(_SLICE, "Array of the shape and dtype of ``operand``.", axis="axis of the window.")
def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return ``operand`` with a window along one axis replaced; see :func:`dynamic_update_slice`.

    >>> lax.dynamic_update_slice_in_dim(jnp.arange(4), jnp.array([9]), 1, 0)
    Array([0, 9, 2, 3], dtype=int32)
    """
    x = as_value(operand, "the operand of dynamic_update_slice_in_dim")
    starts: list[ArrayLike] = [0] * x.ndim
    starts[plain_axis(axis, x.ndim, "dynamic_update_slice_in_dim")] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


@shared_docs(
    _SLICE,
    "Array of the shape and dtype of ``operand``.",
    update="slice, with size 1 along ``axis`` or without it.",
)
def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return ``operand`` with the slice at an index along an axis replaced.

    >>> lax.dynamic_update_index_in_dim(jnp.arange(4), 9, 1, 0)
    Array([0, 9, 2, 3], dtype=int32)
    """
    x, new = as_value(operand, "the operand"), as_value(update, "the update")
    if new.ndim != x.ndim:
        new = sh.expand_dims(new, plain_axis(axis, x.ndim, "dynamic_update_index_in_dim"))
    return dynamic_update_slice_in_dim(
        x, new, index, axis, allow_negative_indices=allow_negative_indices
    )


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Return the parts of ``src`` at these indices along several axes.

    Args:
        src: array.
        idxs: a vector of indices for each of ``axes``, modulo its size.
        axes: axes to index.

    Returns:
        Array of one part per index along the first axis, with the other axes of ``src``.

    Raises:
        IllTyped: the indices are no integers.

    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), [jnp.array([0, -1])], (1,))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = as_value(src, "the operand of index_take")
    places = plain_axes(tuple(axes), x.ndim, "index_take")
    indices = [as_value(i, "the indices of index_take") for i in idxs]
    found = [i % x.shape[axis] for i, axis in zip(indices, places, strict=True)]
    return sh.moveaxis(x, places, range(len(places)))[tuple(found)]
