"""Interpolation of images at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import IllTyped, NotSupported

__all__ = ["map_coordinates"]


def _mirrored(index: Array, size: int) -> Array:
    """Reflect at the centres of the outer elements."""
    period = max(2 * (size - 1), 1)
    return jnp.abs((index + size - 1) % period - (size - 1))


def _reflected(index: Array, size: int) -> Array:
    """Reflect at the edges of the outer elements: mirror in half steps."""
    return (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2


FILLS: Final[dict[str, Callable[[Array, int], Array]]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike] | Array,
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Return the values of an array at points between its elements.

    Args:
        input: array.
        coordinates: for each axis, coordinates of the points in units of elements.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: elements outside: "constant", "nearest", "wrap", "mirror" or "reflect".
        cval: elements outside for "constant".

    Returns:
        Array of the common shape of the coordinates, in the dtype of ``input``.

    Raises:
        NotSupported: another order or mode.
        IllTyped: the number of coordinates is not that of the axes.

    >>> ndimage.map_coordinates(jnp.array([0.0, 10.0]), [jnp.array([0.25])], order=1)
    Array([2.5], dtype=float32)
    """
    image = jnp.asarray(input)
    if mode not in FILLS:
        raise NotSupported("unknown mode of map_coordinates", ", ".join(FILLS), repr(mode))
    if order not in (0, 1):
        raise NotSupported("map_coordinates interpolates up to order 1", "0 or 1", repr(order))
    if len(coordinates) != image.ndim:
        expected, found = f"{image.ndim} coordinates", str(len(coordinates))
        raise IllTyped("the coordinates do not fit the axes", expected, found)
    places = jnp.broadcast_arrays(*[jnp.asarray(c) for c in coordinates])
    neighbours = [_neighbours(c, order) for c in places]
    dtype = jnp.result_type(float, image.dtype)
    total = jnp.zeros(places[0].shape if places else (), dtype)
    for corner in product(*neighbours):
        indices, valid = [], jnp.asarray(True)
        weight = jnp.asarray(1.0, jnp.real(total).dtype)
        for (index, part), size in zip(corner, image.shape, strict=True):
            filled = FILLS[mode](index, size)
            valid = valid & (filled >= 0) & (filled < size)
            indices.append(jnp.clip(filled, 0, size - 1))
            weight = weight * part
        value = jnp.where(valid, image[tuple(indices)], jnp.asarray(cval, image.dtype))
        total = total + weight * value
    if jnp.issubdtype(image.dtype, jnp.integer):
        # Ties are rounded away from 0, as in SciPy.
        total = jnp.trunc(total + jnp.copysign(0.5, total))
    return total.astype(image.dtype)


def _neighbours(c: Array, order: int) -> list[tuple[Array, Array | float]]:
    """Return the indices of the elements around a coordinate, and their weights."""
    places = c.astype(jnp.result_type(float, c))
    if order == 0:
        # A coordinate in the middle of two elements is rounded up.
        return [(jnp.floor(places + 0.5).astype(int), 1.0)]
    low = jnp.floor(places)
    upper = places - low
    return [(low.astype(int), 1 - upper), (low.astype(int) + 1, upper)]
