"""Discrete Fourier transforms, with NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DTypeLike, as_value
from effax.ir.dtypes import complex_dtype, is_complex, real_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Fft, FftType, Pad
from effax.ir.prims.fft import TAKES
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_axes, static_int
from effax.numpy.join import concatenate, roll
from effax.numpy.ranges import arange
from effax.numpy.shapes import moveaxis, slice_along

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Axes = Sequence[int] | None


def _operand(a: ArrayLike, kind: FftType) -> Array:
    """The array in a dtype that is transformed."""
    x = as_value(a, f"the argument of {kind.value}")
    if kind is FftType.RFFT and is_complex(x.dtype):
        raise IllTyped("rfft takes real arrays", "real numbers", str(x.type), "use `fft`")
    dtype = pr.inexact(x.dtype, False)[0]
    dtype = real_dtype(dtype) if kind is FftType.RFFT else complex_dtype(dtype)
    if dtype.name not in TAKES[kind]:
        dtype = np.dtype(np.float32)
    return pr.converted(x, dtype, False)


def _scale(norm: str | None, kind: FftType, count: int) -> float:
    """By what the transform, which divides where it is an inverse, is multiplied."""
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    if norm in (None, "backward"):
        return 1.0
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return float(count) if inverse else 1 / count
    raise BadArgument("there is no such norm of transforms", "backward, ortho, forward", repr(norm))


def _transformed(
    a: ArrayLike, kind: FftType, s: Sequence[int] | None, axes: Axes, norm: str | None
) -> Array:
    x = _operand(a, kind)
    given = None if axes is None else list(axes)
    if given is None and s is not None:
        given = list(range(x.ndim - len(s), x.ndim))
    places = plain_axes(given, x.ndim, kind.value)
    if not places:
        raise BadArgument(f"{kind.value} needs an axis", "at least one axis", str(x.type))
    sizes = [x.shape[i] for i in places]
    if kind is FftType.IRFFT and s is None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if s is not None:
        if len(s) != len(places):
            raise BadArgument("there is one length an axis", f"{len(places)} lengths", str(s))
        sizes = [static_int(n, f"a length of {kind.value}") for n in s]
    if min(sizes) < 1:
        raise BadArgument(f"{kind.value} of no elements", "positive lengths", str(sizes))
    stored = list(sizes)
    if kind is FftType.IRFFT:
        stored[-1] = sizes[-1] // 2 + 1
    for i, n in zip(places, stored, strict=True):
        x = _resized(x, i, n)
    ends = tuple(range(x.ndim - len(places), x.ndim))
    found = moveaxis(_in_turns(moveaxis(x, places, ends), kind, sizes), ends, places)
    scale = _scale(norm, kind, math.prod(sizes))
    return found if scale == 1 else uf.multiply(found, scale)


def _in_turns(x: Array, kind: FftType, sizes: list[int]) -> Array:
    """Transform the last axes, three at most at a time, those before them apart."""
    first, last = sizes[:-3], tuple(sizes[-3:])
    if not first:
        return bind1(Fft(kind, last), x)
    plain = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)
    if kind is FftType.RFFT:
        x = bind1(Fft(kind, last), x)
    n = len(sizes)
    ends = tuple(range(x.ndim - n, x.ndim))
    turned = (*ends[-3:], *ends[:-3])
    x = moveaxis(_in_turns(moveaxis(x, turned, ends), plain, first), ends, turned)
    return x if kind is FftType.RFFT else bind1(Fft(kind, last), x)


def _resized(x: Array, axis: int, size: int) -> Array:
    """Cut, or filled up with zeros, along an axis."""
    have = x.shape[axis]
    if have > size:
        return slice_along(x, axis, 0, size)
    if have == size:
        return x
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (0, size - have, 0)
    return bind1(Pad(tuple(config)), x, pr.literal(0.0, x.type.update(shape=())))


def _one(n: int | None) -> list[int] | None:
    return None if n is None else [n]


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """``A[k] = sum_m a[m] · exp(-2πi·m·k/n)`` along an axis.

    Args:
        a: the array.
        n: the length; what is longer is cut, what is shorter is filled with zeros.
        axis: along which axis.
        norm: "backward" (the inverse divides by n), "ortho" (both divide by its root), "forward".
    """
    return _transformed(a, FftType.FFT, _one(n), [axis], norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`fft`."""
    return _transformed(a, FftType.IFFT, _one(n), [axis], norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first ``n//2 + 1`` elements of :func:`fft` of a real array, which tell the others."""
    return _transformed(a, FftType.RFFT, _one(n), [axis], norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`rfft`; ``n`` is even by default."""
    return _transformed(a, FftType.IRFFT, _one(n), [axis], norm)


_OTHER_WAY = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of what is its own mirrored conjugate, given half: real."""
    return irfft(uf.conj(as_value(a)), n, axis, _OTHER_WAY.get(norm, norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`hfft`."""
    return uf.conj(rfft(a, n, axis, _OTHER_WAY.get(norm, norm)))


def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """:func:`fft` along several axes, by default all."""
    return _transformed(a, FftType.FFT, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """:func:`ifft` along several axes, by default all."""
    return _transformed(a, FftType.IFFT, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """:func:`rfft` along the last of several axes, and :func:`fft` along the others."""
    return _transformed(a, FftType.RFFT, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """The inverse of :func:`rfftn`."""
    return _transformed(a, FftType.IRFFT, s, axes, norm)


def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """:func:`fftn` along two axes."""
    return fftn(a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """:func:`ifftn` along two axes."""
    return ifftn(a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """:func:`rfftn` along two axes."""
    return rfftn(a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Array:
    """:func:`irfftn` along two axes."""
    return irfftn(a, s, axes, norm)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None) -> Array:
    """The frequencies of the elements of :func:`fft`, for samples ``d`` apart."""
    size = _length(n, "fftfreq")
    kind = allowed(float if dtype is None else dtype)
    half = (size - 1) // 2 + 1
    order = concatenate([arange(0, half), arange(-(size // 2), 0)])
    return uf.true_divide(uf.astype(order, kind), uf.multiply(d, size))


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None) -> Array:
    """The frequencies of the elements of :func:`rfft`, for samples ``d`` apart."""
    size = _length(n, "rfftfreq")
    kind = allowed(float if dtype is None else dtype)
    order = uf.astype(arange(0, size // 2 + 1), kind)
    return uf.true_divide(order, uf.multiply(d, size))


def _length(n: int, what: str) -> int:
    size = static_int(n, f"the length of {what}")
    if size < 1:
        raise BadArgument(f"{what} of no elements", "a positive length", str(size))
    return size


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The element of frequency 0 in the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of :func:`fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: ArrayLike, axes: int | Sequence[int] | None, way: int) -> Array:
    value = as_value(x, "the argument of fftshift")
    named = axes if axes is None or isinstance(axes, int) else list(axes)
    places = plain_axes(named, value.ndim, "fftshift")
    for axis in places:
        half = value.shape[axis] // 2
        value = roll(value, half * way, axis)
    return value
