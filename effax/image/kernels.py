"""Weights of resampling: for each sample along an axis, the weight of each pixel.

Source: R. G. Keys, "Cubic convolution interpolation for digital image processing" (1981), and
C. E. Duchon, "Lanczos filtering in one and two dimensions" (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Final

import numpy as np

from effax import numpy as jnp
from effax.arrays.array import Array
from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument

Kernel = Callable[[Array], Array]
"""The weight of a pixel, by its distance from the sample."""


class ResizeMethod(Enum):
    """Method of resampling: the kernel by which pixels near a sample are weighted.

    NEAREST takes one pixel. LINEAR, CUBIC (of Keys), LANCZOS3 and LANCZOS5 interpolate. AREA
    averages the pixels that a new one covers. CUBIC_PYTORCH is CUBIC with antialiasing; without,
    it has a steeper kernel, and repeats the pixels at the edge.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method of this name. Raises BadArgument for an unknown one.

        >>> effax.image.ResizeMethod.from_string("bilinear").name
        'LINEAR'
        """
        for method, names in _NAMES.items():
            if s in names.split():
                return method
        raise BadArgument(
            "unknown method of resampling", ", ".join(_NAMES.values()).replace(" ", ", "), repr(s)
        )


_NAMES: Final[Mapping[ResizeMethod, str]] = {
    ResizeMethod.NEAREST: "nearest",
    ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch",
    ResizeMethod.AREA: "area",
}


def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float, x: Array) -> Array:
    """Return the cubic kernel of slope ``a`` at 1."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


def _lanczos(radius: int, x: Array) -> Array:
    return jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


KEYS: Final = partial(_cubic, -0.5)
STEEP: Final = partial(_cubic, -0.75)

KERNELS: Final[Mapping[ResizeMethod, Kernel]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: partial(_lanczos, 5),
    ResizeMethod.CUBIC: KEYS,
    ResizeMethod.CUBIC_PYTORCH: KEYS,
}


def weights_of(
    size: int,
    samples: int,
    scale: Array,
    translation: Array,
    method: ResizeMethod,
    antialias: bool,
    dtype: DType,
) -> Array:
    """Return the weights of ``size`` pixels in each sample, an array (size, samples).

    A sample i is at ``(i + 1/2 - translation)/scale``, where pixel j is at ``j + 1/2``. Weights of
    a sample outside of the pixels are zero; all others have the sum 1.
    """
    step = (1 / scale).astype(dtype)
    if method is ResizeMethod.AREA:
        return _areas(size, samples, step, translation.astype(dtype))
    width = jnp.maximum(step, 1) if antialias else jnp.ones_like(step)
    places = jnp.arange(samples, dtype=dtype)
    at = (places + 0.5) * step - translation.astype(dtype) * step - 0.5
    pixels = jnp.arange(size, dtype=dtype)[:, None]
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _repeated_edges(size, at)
    found = KERNELS[method](jnp.abs(at - pixels) / width)
    inside = (at >= -0.5) & (at <= size - 0.5)
    return jnp.where(inside, _normalized(found), 0)


def _normalized(weights: Array) -> Array:
    """Return weights of sum 1 for each sample; zeros where the sum is nearly zero."""
    total = weights.sum(0, keepdims=True)
    small = jnp.abs(total) <= 1000 * float(jnp.finfo(np.float32).eps)
    return jnp.where(small, 0, weights / jnp.where(small, 1, total))


def _areas(size: int, samples: int, step: Array, translation: Array) -> Array:
    """Return the part of each sample's interval that each pixel covers."""
    starts = (jnp.arange(samples, dtype=step.dtype) - translation) * step
    left = jnp.arange(size, dtype=step.dtype)[:, None]
    covered = jnp.minimum(starts + step, left + 1) - jnp.maximum(starts, left)
    return _normalized(jnp.maximum(covered, 0))


def _repeated_edges(size: int, at: Array) -> Array:
    """Return weights of the steep cubic kernel, those of two pixels beyond an edge at its pixel."""
    whole = jnp.floor(at)
    found = jnp.zeros((size, at.shape[0]), at.dtype)
    pixels = jnp.arange(size, dtype=at.dtype)[:, None]
    for offset in range(-1, 3):
        place = whole + offset
        near = (place >= -2) & (place <= size + 1) & (pixels == jnp.clip(place, 0, size - 1))
        found = found + jnp.where(near, STEEP(jnp.abs(at - place)), 0)
    return _normalized(found)
