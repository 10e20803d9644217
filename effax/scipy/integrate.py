"""Integrals of samples."""

from __future__ import annotations

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.ir.errors import IllTyped

__all__ = ["trapezoid"]


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return the integral of samples along an axis, by the trapezoidal rule.

    Args:
        y: samples.
        x: places of the samples, of the shape of ``y``, or a vector for the axis.
        dx: distance of the samples, without ``x``.
        axis: axis of the integral.

    Returns:
        Inexact array without the axis.

    Raises:
        IllTyped: ``x`` does not fit ``y``.

    >>> integrate.trapezoid(jnp.array([0.0, 1.0, 4.0]))
    Array(3., dtype=float32)
    """
    dtype = jnp.result_type(float, y, *([] if x is None else [x]))
    values = jnp.asarray(y, dtype=dtype)
    last = jnp.moveaxis(values, plain_axis(axis, values.ndim, "trapezoid"), -1)
    pairs = 0.5 * (last[..., 1:] + last[..., :-1])
    if x is None:
        return jnp.sum(pairs * dx, -1).astype(dtype)
    places = jnp.asarray(x, dtype=dtype)
    if places.ndim > 1:
        places = jnp.moveaxis(places, axis, -1)
    if places.ndim < 1 or places.shape[-1] != last.shape[-1]:
        raise IllTyped("x does not fit y", f"{last.shape[-1]} places", str(places.type))
    return jnp.sum(pairs * jnp.diff(places), -1)
