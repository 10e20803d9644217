"""Discrete cosine transforms, by the fast Fourier transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped

__all__ = ["dct", "dctn", "idct", "idctn"]

PARAMETERS: Final = {
    "x": "array; the parts of complex numbers are transformed apart.",
    "type": "1, 2, 3 or 4.",
    "n": "size of the axis, to which it is cut or filled with zeros; its own by default.",
    "axis": "axis of the transform.",
    "norm": "None or 'backward' for the sums as they stand, 'ortho' for an orthogonal transform.",
    "s": "sizes of the axes, to which they are cut or filled with zeros.",
    "axes": "axes of the transform; the last ones for ``s``, or all, by default.",
}
RESULT: Final = "Floating array with the axes in their new sizes."
INVERSES: Final = {1: 1, 2: 3, 3: 2, 4: 4}


def _prepared(x: ArrayLike, type: int, n: int | None, axis: int, norm: str | None) -> Array:
    if type not in INVERSES:
        raise BadArgument("unknown type of cosine transform", "1, 2, 3 or 4", repr(type))
    if norm not in (None, "backward", "ortho"):
        raise BadArgument("unknown norm", "None, 'backward' or 'ortho'", repr(norm))
    value = jnp.asarray(x).astype(jnp.result_type(float, x))
    if not value.ndim:
        raise IllTyped("cosine transforms take arrays of one axis or more", found=str(value.type))
    last = jnp.moveaxis(value, plain_axis(axis, value.ndim, "dct"), -1)
    size = last.shape[-1] if n is None else n
    if size < 1 + (type == 1):
        raise BadArgument("too few elements for this transform", str(1 + (type == 1)), str(size))
    kept = last[..., :size]
    return jnp.pad(kept, [*[(0, 0)] * (kept.ndim - 1), (0, size - kept.shape[-1])])


def _sums(x: Array, type: int) -> Array:
    """Return the sums 2·Σ x_n·cos(...) along the last axis."""
    n = x.shape[-1]
    if type == 1:
        return jnp.real(jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], -1)))
    k = np.arange(n)
    if type == 2:
        # The even elements, then the odd ones backwards (Makhoul 1980).
        order = np.concatenate([k[::2], k[1::2][::-1]])
        turn = jnp.asarray(2 * np.exp(-0.5j * np.pi * k / n), _complex(x))
        return jnp.real(jnp.fft.fft(x[..., order]) * turn)
    if type == 3:
        turn = jnp.asarray(np.exp(0.5j * np.pi * k / n), _complex(x))
        ends = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
        values = jnp.real(jnp.fft.ifft((x - 1j * ends) * turn)) * n
        back = np.empty(n, int)
        back[::2], back[1::2] = np.arange((n + 1) // 2), np.arange(n - 1, (n + 1) // 2 - 1, -1)
        return values[..., back]
    turn = jnp.asarray(np.exp(-0.5j * np.pi * k / n), _complex(x))
    outer = jnp.asarray(2 * np.exp(-0.25j * np.pi * (2 * k + 1) / n), _complex(x))
    return jnp.real(jnp.fft.fft(x * turn, 2 * n)[..., :n] * outer)


def _complex(x: Array) -> np.dtype[np.complexfloating]:
    return np.dtype(np.complex128 if x.dtype == np.float64 else np.complex64)


def _transformed(x: Array, type: int, norm: str | None) -> Array:
    if is_complex(x.dtype):
        return lax.complex(*[_transformed(part, type, norm) for part in (x.real, x.imag)])
    n = x.shape[-1]
    if norm != "ortho":
        return _sums(x, type)
    before, after = np.ones(n), np.ones(n)
    if type == 1:
        before[[0, -1]], after[[0, -1]] = math.sqrt(2), math.sqrt(0.5)
    if type == 2:
        after[0] = math.sqrt(0.5)
    if type == 3:
        before[0] = math.sqrt(2)
    scale = after / math.sqrt(2 * (n - (type == 1)))
    inside = x * jnp.asarray(before, x.dtype)
    return _sums(inside, type) * jnp.asarray(scale, x.dtype)


@shared_docs(PARAMETERS, RESULT)
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the discrete cosine transform along an axis.

    Raises:
        BadArgument: an unknown type or norm, or too few elements.
        IllTyped: ``x`` has no axes.

    >>> fft.dct(jnp.array([1.0, 1.0]))
    Array([4., 0.], dtype=float32)
    """
    return jnp.moveaxis(_transformed(_prepared(x, type, n, axis, norm), type, norm), -1, axis)


@shared_docs(PARAMETERS, RESULT)
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse of :func:`dct` along an axis.

    Raises:
        BadArgument: an unknown type or norm, or too few elements.
        IllTyped: ``x`` has no axes.

    >>> fft.idct(jnp.array([4.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    value = _prepared(x, type, n, axis, norm)
    size = value.shape[-1] - (type == 1)
    scale = 1 if norm == "ortho" else 1 / (2 * size)
    return jnp.moveaxis(_transformed(value, INVERSES[type], norm) * scale, -1, axis)


def _axes(
    x: ArrayLike, s: Sequence[int] | None, axes: Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """Return the axes and their sizes. Raises BadArgument where the numbers differ."""
    ndim = jnp.ndim(x)
    if axes is None:
        if s is not None and len(s) > ndim:
            raise BadArgument("s has more sizes than there are axes", str(ndim), str(len(s)))
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        raise BadArgument("s and axes differ in length", str(len(axes)), str(len(sizes)))
    return list(zip(axes, sizes, strict=True))


@shared_docs(PARAMETERS, RESULT)
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the discrete cosine transform along several axes.

    Raises:
        BadArgument: an unknown type or norm, too few elements, or ``s`` does not fit ``axes``.
        IllTyped: ``x`` has no axes.

    >>> fft.dctn(jnp.array([[1.0, 1.0]]))
    Array([[8., 0.]], dtype=float32)
    """
    result = jnp.asarray(x)
    for axis, n in _axes(x, s, axes):
        result = dct(result, type, n, axis, norm)
    return result


@shared_docs(PARAMETERS, RESULT)
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the inverse of :func:`dctn`.

    Raises:
        BadArgument: an unknown type or norm, too few elements, or ``s`` does not fit ``axes``.
        IllTyped: ``x`` has no axes.

    >>> fft.idctn(jnp.array([[8.0, 0.0]]))
    Array([[1., 1.]], dtype=float32)
    """
    result = jnp.asarray(x)
    for axis, n in _axes(x, s, axes):
        result = idct(result, type, n, axis, norm)
    return result
