"""Images in another size, or scaled and translated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax import numpy as jnp
from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes, plain_shape
from effax.arrays.conversion import as_value
from effax.image.kernels import ResizeMethod, weights_of
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape
from effax.lax.precision import Precision

__all__ = ["resize", "scale_and_translate"]


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: object = Precision.HIGHEST,
) -> Array:
    """Return an image scaled, then translated: ``x' = x·scale + translation``.

    The center of pixel i is at ``i + 1/2``. Samples outside of the image are zero.

    Args:
        image: array.
        shape: shape of the result, with the sizes of ``image`` along other axes.
        spatial_dims: axes to transform.
        scale: vector of positive factors, one per axis.
        translation: vector of distances in new pixels, one per axis.
        method: a ``ResizeMethod`` but NEAREST, or its name.
        antialias: whether a kernel is as wide as a new pixel, where that is larger.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.

    Returns:
        Array of shape ``shape``, in an inexact dtype.

    Raises:
        IllTyped: ``shape`` does not fit, or there is not one scale and translation per axis.
        BadArgument: NEAREST, or an unknown method.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> effax.image.scale_and_translate(x, (2,), (0,), jnp.ones(1), jnp.array([-1.0]), "linear")
    Array([2., 3.], dtype=float32)
    """
    x = _inexact(image, "scale_and_translate")
    sizes = plain_shape(shape, "scale_and_translate")
    axes = plain_axes(tuple(spatial_dims), x.ndim, "scale_and_translate")
    factors, shifts = as_value(scale, "the scale"), as_value(translation, "the translation")
    _check(x, sizes, axes)
    if factors.shape != (len(axes),) or shifts.shape != (len(axes),):
        raise IllTyped(
            "scale_and_translate takes one scale and one translation per axis",
            expected=f"vectors of {len(axes)}",
            found=f"{factors.type}, {shifts.type}",
        )
    kind = _method(method)
    if kind is ResizeMethod.NEAREST:
        raise BadArgument(
            "scale_and_translate interpolates", "another method", "nearest", "use `resize`"
        )
    return _transformed(x, sizes, axes, factors, shifts, kind, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: object = Precision.HIGHEST,
) -> Array:
    """Return an image in another size.

    Args:
        image: array.
        shape: shape of the result; axes of another size are scaled.
        method: a ``ResizeMethod`` or its name: "nearest", "linear", "cubic", "lanczos3",
            "lanczos5", "area", ...
        antialias: whether a kernel is as wide as a new pixel, where that is larger.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.

    Returns:
        Array of shape ``shape``; of the dtype of ``image`` for "nearest", else of an inexact one.

    Raises:
        IllTyped: ``shape`` has another number of axes, or an axis without elements is to get some.
        BadArgument: an unknown method.

    >>> effax.image.resize(jnp.array([1.0, 2.0]), (4,), "linear")
    Array([1.  , 1.25, 1.75, 2.  ], dtype=float32)
    """
    kind, sizes = _method(method), plain_shape(shape, "resize")
    x = as_value(image, "the image of resize")
    axes = tuple(i for i, (m, n) in enumerate(zip(x.shape, sizes, strict=False)) if m != n)
    _check(x, sizes, axes)
    if kind is ResizeMethod.NEAREST:
        for axis in axes:
            n, m = x.shape[axis], sizes[axis]
            x = jnp.take(x, np.floor((np.arange(m) + 0.5) * (n / max(m, 1))).astype(int), axis)
        return x
    x = _inexact(x, "resize")
    factors = [sizes[i] / x.shape[i] if x.shape[i] and sizes[i] else 1.0 for i in axes]
    scale = jnp.asarray(factors, jnp.result_type(np.float32, jnp.real(x).dtype))
    zeros = jnp.zeros_like(scale)
    return _transformed(x, sizes, axes, scale, zeros, kind, antialias, precision)


def _inexact(image: ArrayLike, what: str) -> Array:
    x = as_value(image, f"the image of {what}")
    return pr.converted(x, pr.inexact(x.dtype, False)[0], False)


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(str(method))


def _check(x: Array, sizes: Shape, axes: Sequence[int]) -> None:
    """Raise IllTyped unless an image can get these sizes, other ones along these axes only."""
    kept = [i for i in range(x.ndim) if i not in axes]
    if (
        len(sizes) != x.ndim
        or any(sizes[i] != x.shape[i] for i in kept)
        or any(sizes[i] and not x.shape[i] for i in axes)
    ):
        raise IllTyped(
            "an image cannot get this shape",
            expected=f"{x.ndim} sizes, those of {x.type} along axes that are not scaled",
            found=str(sizes),
        )


def _transformed(
    x: Array,
    sizes: Shape,
    axes: Sequence[int],
    scale: Array,
    translation: Array,
    method: ResizeMethod,
    antialias: bool,
    precision: object,
) -> Array:
    """Return the products of the image with the weights along each axis."""
    if 0 in sizes or not axes:
        return x if not axes else jnp.zeros(sizes, x.dtype)
    real = jnp.real(x).dtype
    wide = jnp.promote_types(real, np.float32)
    for i, axis in enumerate(axes):
        weights = weights_of(
            x.shape[axis], sizes[axis], scale[i], translation[i], method, antialias, wide
        )
        product = jnp.tensordot(x, weights.astype(x.dtype), ((axis,), (0,)), precision=precision)
        x = jnp.moveaxis(product, -1, axis)
    return x
