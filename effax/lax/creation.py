"""Arrays made from a shape, by JAX's names: constants and counts."""

from __future__ import annotations

from collections.abc import Sequence

from effax.arrays import creation
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axis, plain_shape
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.placed import on_device
from effax.ir.errors import IllTyped
from effax.ir.prims import shape as prims

__all__ = [
    "broadcasted_iota", "empty", "full", "full_like", "iota", "shape_as_value", "zeros_like",
    "zeros_like_array",
]  # fmt: skip


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the vector ``0, 1, 2, ...``.

    Args:
        dtype: dtype of the result.
        size: number of elements.

    Returns:
        Array of shape (size,).

    >>> lax.iota(jnp.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: object = None
) -> Array:
    """Return an array with ``0, 1, 2, ...`` along an axis, constant along the others.

    Args:
        dtype: dtype of the result.
        shape: sizes of the result.
        dimension: axis to count along.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    >>> lax.broadcasted_iota(jnp.int32, (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    sizes = plain_shape(shape, "broadcasted_iota")
    axis = plain_axis(dimension, len(sizes), "iota")
    return on_device(bind1(prims.Iota(allowed(dtype), sizes, axis)), out_sharding, "iota")


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: object = None,
) -> Array:
    """Return an array filled with a scalar.

    Args:
        shape: sizes of the result.
        fill_value: scalar.
        dtype: dtype of the result, that of ``fill_value`` by default.
        sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    Raises:
        IllTyped: ``fill_value`` is not a scalar.

    >>> lax.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    if pr.shape_of(fill_value):
        raise IllTyped("full takes a scalar", "a scalar", str(pr.shape_of(fill_value)))
    return creation.full(shape, fill_value, dtype, device=sharding)


def empty(shape: int | Sequence[int], dtype: DTypeLike, *, out_sharding: object = None) -> Array:
    """Return an array whose elements are not used: zeros.

    Args:
        shape: sizes of the result.
        dtype: dtype of the result.
        out_sharding: sharding of the result.

    Returns:
        Array of shape ``shape``.

    >>> lax.empty((2,), jnp.int32).shape
    (2,)
    """
    return on_device(creation.zeros(shape, dtype), out_sharding, "empty")


def shape_as_value(shape: Sequence[int]) -> Array:
    """Return the sizes of a shape as a vector.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return creation.array(plain_shape(shape, "shape_as_value"), "int32")


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: object = None,
) -> Array:
    """Return an array filled with a scalar, of the shape and dtype of ``x``.

    Args:
        x: array or scalar.
        fill_value: scalar.
        dtype: dtype of the result instead.
        shape: shape of the result instead.
        sharding: sharding of the result.

    Returns:
        Array of the requested shape and dtype.

    >>> lax.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    return on_device(creation.full_like(x, fill_value, dtype, shape), sharding, "full_like")


def zeros_like(x: ArrayLike) -> Array:
    """Return zeros of the shape and dtype of ``x``.

    >>> lax.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return creation.zeros_like(x)


zeros_like_array = zeros_like
