"""Convolution and correlation of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

PARAMETERS: Final = {
    "in1": "array.",
    "in2": "array of the same number of axes.",
    "mode": "'full'; 'same' for the size of ``in1``, or 'valid' for sums without padding.",
    "method": "'direct', 'fft', or 'auto' for 'direct'.",
    "precision": "precision of the products: None, 'high', 'highest' or a ``lax.Precision``.",
    "boundary": "must be 'fill'.",
    "fillvalue": "must be 0.",
    "axes": "axes of the convolution; all by default.",
}


def _pair(
    in1: ArrayLike, in2: ArrayLike, what: str, ndim: int | None = None
) -> tuple[Array, Array]:
    dtype = jnp.result_type(float, in1, in2)
    x, y = jnp.asarray(in1, dtype=dtype), jnp.asarray(in2, dtype=dtype)
    if x.ndim != y.ndim or (ndim is not None and x.ndim != ndim):
        expected = "arrays of one number of axes" if ndim is None else f"arrays of {ndim} axes"
        raise IllTyped(f"{what} takes other arrays", expected, f"{x.type} and {y.type}")
    return x, y


def _checked_mode(mode: str, what: str) -> None:
    if mode not in ("full", "same", "valid"):
        raise BadArgument(f"unknown mode of {what}", "'full', 'same' or 'valid'", repr(mode))


def _direct(x: Array, y: Array, precision: object) -> Array:
    """Return the full convolution, by one of XLA's."""
    pads = [(n - 1, n - 1) for n in y.shape]
    kernel = jnp.flip(y)
    found = lax.conv_general_dilated(
        x[None, None], kernel[None, None], (1,) * x.ndim, pads, precision=precision
    )
    return found[0, 0]


def _by_fft(x: Array, y: Array, axes: tuple[int, ...]) -> Array:
    """Return the full convolution along axes, and products along the others."""
    sizes = [x.shape[a] + y.shape[a] - 1 for a in axes]
    if is_complex(x.dtype):
        return jnp.fft.ifftn(
            jnp.fft.fftn(x, sizes, axes) * jnp.fft.fftn(y, sizes, axes), sizes, axes
        )
    return jnp.fft.irfftn(
        jnp.fft.rfftn(x, sizes, axes) * jnp.fft.rfftn(y, sizes, axes), sizes, axes
    )


def _cut(full: Array, x: Array, y: Array, mode: str, axes: tuple[int, ...]) -> Array:
    """Return the part of a full convolution that a mode keeps."""
    for a in axes:
        n, m = x.shape[a], y.shape[a]
        if mode == "full":
            continue
        size = n if mode == "same" else abs(n - m) + 1
        start = (m - 1) // 2 if mode == "same" else min(n, m) - 1
        full = lax.slice_in_dim(full, start, start + size, axis=a)
    return full


def _convolved(x: Array, y: Array, mode: str, method: str, precision: object) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise BadArgument("unknown method", "'auto', 'direct' or 'fft'", repr(method))
    axes = tuple(range(x.ndim))
    if not x.ndim:
        return x * y
    if mode == "valid" and any(a < b for a, b in zip(x.shape, y.shape, strict=True)):
        if any(a > b for a, b in zip(x.shape, y.shape, strict=True)):
            expected = "one array that is the larger along every axis"
            raise IllTyped("mode='valid' takes other sizes", expected, f"{x.shape} and {y.shape}")
        x, y = y, x
    full = _by_fft(x, y, axes) if method == "fft" else _direct(x, y, precision)
    return _cut(full, x, y, mode, axes)


@shared_docs(PARAMETERS, "Inexact array.")
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """Return the convolution of two arrays.

    Raises:
        BadArgument: an unknown mode or method.
        IllTyped: the arrays do not fit.

    >>> signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    _checked_mode(mode, "convolve")
    return _convolved(*_pair(in1, in2, "convolve"), mode, method, precision)


@shared_docs(PARAMETERS, "Inexact array.")
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """Return the correlation of two arrays: the convolution with the conjugate of a reversed one.

    Raises:
        BadArgument: an unknown mode or method.
        IllTyped: the arrays do not fit.

    >>> signal.correlate(jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0]))
    Array([0., 1., 2.], dtype=float32)
    """
    _checked_mode(mode, "correlate")
    x, y = _pair(in1, in2, "correlate")
    if mode == "valid" and any(a < b for a, b in zip(x.shape, y.shape, strict=True)):
        return jnp.flip(jnp.conj(_as(_correlated(y, x, mode, method, precision), x)))
    return _correlated(x, y, mode, method, precision)


def _as(found: Array, like: Array) -> Array:
    return found if is_complex(like.dtype) else jnp.real(found)


def _correlated(x: Array, y: Array, mode: str, method: str, precision: object) -> Array:
    back = jnp.flip(jnp.conj(y) if is_complex(y.dtype) else y)
    return _convolved(x, back, mode, method, precision)


def _plain_boundary(boundary: str, fillvalue: float, what: str) -> None:
    if boundary != "fill" or fillvalue != 0:
        found = f"{boundary!r} with {fillvalue}"
        raise BadArgument(f"{what} fills with zeros", "boundary='fill', fillvalue=0", found)


@shared_docs(PARAMETERS, "Inexact array.")
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: object = None,
) -> Array:
    """Return the convolution of two matrices.

    Raises:
        BadArgument: an unknown mode or boundary.
        IllTyped: the arrays are no matrices, or do not fit.

    >>> signal.convolve2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0], [1.0]]))
    Array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    _plain_boundary(boundary, fillvalue, "convolve2d")
    _checked_mode(mode, "convolve2d")
    return _convolved(*_pair(in1, in2, "convolve2d", 2), mode, "direct", precision)


@shared_docs(PARAMETERS, "Inexact array.")
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: object = None,
) -> Array:
    """Return the correlation of two matrices.

    Raises:
        BadArgument: an unknown mode or boundary.
        IllTyped: the arrays are no matrices, or do not fit.

    >>> signal.correlate2d(jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 0.0]]))
    Array([[0., 1., 2.]], dtype=float32)
    """
    _plain_boundary(boundary, fillvalue, "correlate2d")
    _checked_mode(mode, "correlate2d")
    x, y = _pair(in1, in2, "correlate2d", 2)
    if mode != "same":
        return correlate(x, y, mode, "direct", precision)
    # The centre of an even size is the later element here, as in SciPy.
    full = _correlated(x, y, "full", "direct", precision)
    for a in (0, 1):
        start = y.shape[a] // 2
        full = lax.slice_in_dim(full, start, start + x.shape[a], axis=a)
    return full


@shared_docs(PARAMETERS, "Inexact array.")
def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Return the convolution of two arrays, by the fast Fourier transform.

    Raises:
        BadArgument: an unknown mode.
        IllTyped: the arrays do not fit.

    >>> signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    _checked_mode(mode, "fftconvolve")
    x, y = _pair(in1, in2, "fftconvolve")
    if axes is None:
        return _convolved(x, y, mode, "fft", None)
    places = plain_axes(axes if isinstance(axes, int) else list(axes), x.ndim, "fftconvolve")
    if mode == "valid" and all(x.shape[a] <= y.shape[a] for a in places):
        x, y = y, x
    return _cut(_by_fft(x, y, places), x, y, mode, places)
