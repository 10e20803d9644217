"""Discrete Fourier transforms, with NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes, static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shapes import moveaxis, slice_along
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import complex_dtype, is_complex, real_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Fft, FftType, Pad
from effax.ir.prims.fft import TAKES
from effax.numpy import ufuncs as uf
from effax.numpy.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Axes = Sequence[int] | None


_TRANSFORM: Final = {
    "a": "array or scalar.",
    "n": "length to which ``axis`` is truncated or zero-padded; its size by default.",
    "axis": "axis to transform.",
    "norm": '"backward" (the inverse divides by n), "ortho" (both divide by sqrt(n)) or "forward".',
    "s": "lengths to which the axes are truncated or zero-padded; their sizes by default.",
    "axes": "axes to transform; None for all, or the last ``len(s)``.",
}
"""Descriptions of the parameters that functions share."""


def _operand(a: ArrayLike, kind: FftType) -> Array:
    """Return the array in a dtype of transforms."""
    x = as_value(a, f"the argument of {kind.value}")
    if kind is FftType.RFFT and is_complex(x.dtype):
        raise IllTyped("rfft takes real arrays", "real numbers", str(x.type), "use `fft`")
    dtype = pr.inexact(x.dtype, False)[0]
    dtype = real_dtype(dtype) if kind is FftType.RFFT else complex_dtype(dtype)
    if dtype.name not in TAKES[kind]:
        dtype = np.dtype(np.float32)
    return pr.converted(x, dtype, False)


def _scale(norm: str | None, kind: FftType, count: int) -> float:
    """Return the factor of the normalization, given that inverse primitives divide."""
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    if norm in (None, "backward"):
        return 1.0
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return float(count) if inverse else 1 / count
    raise BadArgument("unknown norm of transforms", "backward, ortho, forward", repr(norm))


def _transformed(
    a: ArrayLike, kind: FftType, s: Sequence[int] | None, axes: Axes, norm: str | None
) -> Array:
    x = _operand(a, kind)
    given = None if axes is None else list(axes)
    if given is None and s is not None:
        given = list(range(x.ndim - len(s), x.ndim))
    places = plain_axes(given, x.ndim, kind.value)
    if not places:
        raise BadArgument(f"{kind.value} takes at least one axis", "at least one axis", str(x.type))
    sizes = [x.shape[i] for i in places]
    if kind is FftType.IRFFT and s is None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if s is not None:
        if len(s) != len(places):
            raise BadArgument("expected one length per axis", f"{len(places)} lengths", str(s))
        sizes = [static_int(n, f"a length of {kind.value}") for n in s]
    if min(sizes) < 1:
        raise BadArgument(f"{kind.value} of no elements", "positive lengths", str(sizes))
    stored = list(sizes)
    if kind is FftType.IRFFT:
        stored[-1] = sizes[-1] // 2 + 1
    for i, n in zip(places, stored, strict=True):
        x = _resized(x, i, n)
    ends = tuple(range(x.ndim - len(places), x.ndim))
    found = moveaxis(_transform_last_axes(moveaxis(x, places, ends), kind, sizes), ends, places)
    scale = _scale(norm, kind, math.prod(sizes))
    return found if scale == 1 else uf.multiply(found, scale)


def _transform_last_axes(x: Array, kind: FftType, sizes: list[int]) -> Array:
    """Transform the last axes, at most three at a time."""
    first, last = sizes[:-3], tuple(sizes[-3:])
    if not first:
        return bind1(Fft(kind, last), x)
    plain = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)
    if kind is FftType.RFFT:
        x = bind1(Fft(kind, last), x)
    n = len(sizes)
    ends = tuple(range(x.ndim - n, x.ndim))
    turned = (*ends[-3:], *ends[:-3])
    x = moveaxis(_transform_last_axes(moveaxis(x, turned, ends), plain, first), ends, turned)
    return x if kind is FftType.RFFT else bind1(Fft(kind, last), x)


def _resized(x: Array, axis: int, size: int) -> Array:
    """Truncate or zero-pad along an axis."""
    have = x.shape[axis]
    if have > size:
        return slice_along(x, axis, 0, size)
    if have == size:
        return x
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (0, size - have, 0)
    return bind1(Pad(tuple(config)), x, pr.literal(0.0, x.type.update(shape=())))


def _two(axes: Axes, what: str) -> Axes:
    """Return the axes. Raises BadArgument unless there are two."""
    if axes is None or len(axes) != 2:
        raise BadArgument(f"{what} transforms two axes", "two axes", str(axes), "use fftn")
    return axes


def _one(n: int | None) -> list[int] | None:
    return None if n is None else [n]


@shared_docs(_TRANSFORM, "Complex array, size ``n`` along ``axis``.")
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform ``A[k] = sum_m a[m] * exp(-2πi * m * k / n)``.

    Raises:
        BadArgument: an unknown norm, or a length below 1.

    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed(a, FftType.FFT, _one(n), [axis], norm)


@shared_docs(_TRANSFORM, "Complex array, size ``n`` along ``axis``.")
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse transform of :func:`fft`.

    >>> jnp.fft.ifft(jnp.array([2.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed(a, FftType.IFFT, _one(n), [axis], norm)


@shared_docs(_TRANSFORM, "Complex array, size ``n // 2 + 1`` along ``axis``.")
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the nonnegative frequencies of :func:`fft` of a real array.

    Raises:
        IllTyped: ``a`` is complex.

    >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed(a, FftType.RFFT, _one(n), [axis], norm)


@shared_docs(
    _TRANSFORM,
    "Real array, size ``n`` along ``axis``.",
    n="length of the result; ``2 * (size - 1)`` by default.",
)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse transform of :func:`rfft`.

    >>> jnp.fft.irfft(jnp.array([2.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    return _transformed(a, FftType.IRFFT, _one(n), [axis], norm)


_OTHER_WAY = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


@shared_docs(
    _TRANSFORM,
    "Real array, size ``n`` along ``axis``.",
    n="length of the result; ``2 * (size - 1)`` by default.",
)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the real transform of a Hermitian signal, from its nonnegative half.

    >>> jnp.fft.hfft(jnp.array([1.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    return irfft(uf.conj(as_value(a)), n, axis, _OTHER_WAY.get(norm, norm))


@shared_docs(_TRANSFORM, "Complex array, size ``n // 2 + 1`` along ``axis``.")
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse transform of :func:`hfft`.

    >>> jnp.fft.ihfft(jnp.array([2.0, 0.0]))
    Array([1.-0.j, 1.-0.j], dtype=complex64)
    """
    return uf.conj(rfft(a, n, axis, _OTHER_WAY.get(norm, norm)))


@shared_docs(_TRANSFORM, "Complex array, sizes ``s`` along ``axes``.")
def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Return :func:`fft` along several axes.

    >>> jnp.fft.fftn(jnp.array([[1.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transformed(a, FftType.FFT, s, axes, norm)


@shared_docs(_TRANSFORM, "Complex array, sizes ``s`` along ``axes``.")
def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Return :func:`ifft` along several axes.

    >>> jnp.fft.ifftn(jnp.array([[2.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transformed(a, FftType.IFFT, s, axes, norm)


@shared_docs(_TRANSFORM, "Complex array, size ``s[-1] // 2 + 1`` along the last axis.")
def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Return :func:`rfft` along the last of several axes and :func:`fft` along the others.

    Raises:
        IllTyped: ``a`` is complex.

    >>> jnp.fft.rfftn(jnp.array([[1.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transformed(a, FftType.RFFT, s, axes, norm)


@shared_docs(_TRANSFORM, "Real array, sizes ``s`` along ``axes``.")
def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Return the inverse transform of :func:`rfftn`.

    >>> jnp.fft.irfftn(jnp.array([[2.0, 0.0]]))
    Array([[1., 1.]], dtype=float32)
    """
    return _transformed(a, FftType.IRFFT, s, axes, norm)


@shared_docs(_TRANSFORM, "Complex array, sizes ``s`` along ``axes``.")
def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """Return :func:`fftn` along two axes.

    >>> jnp.fft.fft2(jnp.array([[1.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return fftn(a, s, _two(axes, "fft2"), norm)


@shared_docs(_TRANSFORM, "Complex array, sizes ``s`` along ``axes``.")
def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """Return :func:`ifftn` along two axes.

    >>> jnp.fft.ifft2(jnp.array([[2.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return ifftn(a, s, _two(axes, "ifft2"), norm)


@shared_docs(_TRANSFORM, "Complex array, size ``s[-1] // 2 + 1`` along the last axis.")
def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """Return :func:`rfftn` along two axes.

    Raises:
        IllTyped: ``a`` is complex.

    >>> jnp.fft.rfft2(jnp.array([[1.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return rfftn(a, s, _two(axes, "rfft2"), norm)


@shared_docs(_TRANSFORM, "Real array, sizes ``s`` along ``axes``.")
def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """Return the inverse transform of :func:`rfft2`.

    >>> jnp.fft.irfft2(jnp.array([[2.0, 0.0]]))
    Array([[1., 1.]], dtype=float32)
    """
    return irfftn(a, s, _two(axes, "irfft2"), norm)
