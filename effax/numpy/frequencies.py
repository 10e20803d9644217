"""Frequencies of discrete Fourier transforms, and their order."""

from __future__ import annotations

from collections.abc import Sequence

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axes, static_int
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.ir.errors import BadArgument
from effax.numpy import ufuncs as uf
from effax.numpy.join import concatenate, roll
from effax.numpy.ranges import arange

__all__ = [
    "fftfreq", "fftshift", "ifftshift", "rfftfreq",
]  # fmt: skip


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Return the frequencies of the elements of :func:`fft`.

    Args:
        n: length of the transform.
        d: distance of the samples.
        dtype: dtype of the result, float32 by default.
        device: the first device, its platform, or a sharding over it; None is the first.

    Returns:
        Array of shape (n,).

    Raises:
        BadArgument: ``n`` is below 1.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    size = _length(n, "fftfreq")
    kind = default_dtype(dtype)
    half = (size - 1) // 2 + 1
    order = concatenate([arange(0, half), arange(-(size // 2), 0)])
    made = uf.true_divide(uf.astype(order, kind), uf.multiply(d, size))
    return on_device(made, device, "fftfreq")


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Return the frequencies of the elements of :func:`rfft`.

    Args:
        n: length of the transform.
        d: distance of the samples.
        dtype: dtype of the result, float32 by default.
        device: the first device, its platform, or a sharding over it; None is the first.

    Returns:
        Array of shape (n // 2 + 1,).

    Raises:
        BadArgument: ``n`` is below 1.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    size = _length(n, "rfftfreq")
    kind = default_dtype(dtype)
    order = uf.astype(arange(0, size // 2 + 1), kind)
    return on_device(uf.true_divide(order, uf.multiply(d, size)), device, "rfftfreq")


def _length(n: int, what: str) -> int:
    size = static_int(n, f"the length of {what}")
    if size < 1:
        raise BadArgument(f"{what} of no elements", "a positive length", str(size))
    return size


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Return ``x`` with frequency 0 in the middle.

    Args:
        x: array or scalar.
        axes: axis or axes to shift; None shifts all.

    Returns:
        Array of the shape and dtype of ``x``.

    >>> jnp.fft.fftshift(jnp.array([0, 1, -1]))
    Array([-1,  0,  1], dtype=int32)
    """
    return _shifted(x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Return the inverse of :func:`fftshift`.

    Args:
        x: array or scalar.
        axes: axis or axes to shift; None shifts all.

    Returns:
        Array of the shape and dtype of ``x``.

    >>> jnp.fft.ifftshift(jnp.array([-1, 0, 1]))
    Array([ 0,  1, -1], dtype=int32)
    """
    return _shifted(x, axes, -1)


def _shifted(x: ArrayLike, axes: int | Sequence[int] | None, way: int) -> Array:
    value = as_value(x, "the argument of fftshift")
    named = axes if axes is None or isinstance(axes, int) else list(axes)
    places = plain_axes(named, value.ndim, "fftshift")
    for axis in places:
        half = value.shape[axis] // 2
        value = roll(value, half * way, axis)
    return value
