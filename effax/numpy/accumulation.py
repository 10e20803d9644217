"""Cumulative sums and products along an axis, as the Array API has them."""

from __future__ import annotations

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.creation import full
from effax.arrays.joining import concatenate
from effax.ir.errors import BadArgument
from effax.numpy.reduce import cumprod, cumsum

__all__ = [
    "cumulative_prod", "cumulative_sum",
]  # fmt: skip


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the cumulative sum of the elements along ``axis``.

    Args:
        x: array; a vector where ``axis`` is None.
        axis: axis.
        dtype: dtype to accumulate in; integers narrower than the default widen to it.
        include_initial: whether the result begins with 0.

    Returns:
        Array of the shape of ``x``, one longer along the axis if it begins with 0.

    Raises:
        BadArgument: ``axis`` is None for an array of several axes.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    value, place = _one_axis(x, axis, "cumulative_sum")
    return _with_initial(cumsum(value, place, dtype), place, 0, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the cumulative product of the elements along ``axis``.

    Args:
        x: array; a vector where ``axis`` is None.
        axis: axis.
        dtype: dtype to accumulate in; integers narrower than the default widen to it.
        include_initial: whether the result begins with 1.

    Returns:
        Array of the shape of ``x``, one longer along the axis if it begins with 1.

    Raises:
        BadArgument: ``axis`` is None for an array of several axes.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    value, place = _one_axis(x, axis, "cumulative_prod")
    return _with_initial(cumprod(value, place, dtype), place, 1, include_initial)


def _one_axis(x: ArrayLike, axis: int | None, what: str) -> tuple[Array, int]:
    value = as_value(x, f"the argument of {what}")
    if axis is None and value.ndim != 1:
        raise BadArgument(f"{what} expects an axis", "an axis, or a vector", str(value.type))
    return value, plain_axis(axis or 0, value.ndim, what)


def _with_initial(x: Array, axis: int, initial: int, wanted: bool) -> Array:
    if not wanted:
        return x
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return concatenate([full(shape, initial, x.dtype), x], axis)
