"""Differences, derivatives and integrals of sampled functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axes, plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.joining import concatenate
from effax.arrays.shapes import ravel, reshape, slice_along
from effax.ir.dtypes import is_integer
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.arithmetic import remainder
from effax.numpy.positions import where
from effax.numpy.reduce import cumsum, sum
from effax.numpy.sorting import diff

__all__ = [
    "ediff1d", "gradient", "trapezoid", "unwrap",
]  # fmt: skip


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Return the differences of adjacent elements of the flattened array.

    Args:
        ary: array or scalar.
        to_end: elements to append.
        to_begin: elements to prepend.

    Returns:
        Vector of the dtype of ``ary``.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=0)
    Array([3, 5, 0], dtype=int32)
    """
    x = ravel(as_value(ary, "the argument of ediff1d"))
    inner = diff(x) if x.size else x
    edges = [None if e is None else uf.astype(ravel(e), x.dtype) for e in (to_begin, to_end)]
    return concatenate([part for part in (edges[0], inner, edges[1]) if part is not None])


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """Return the derivatives of a sampled function, by central differences of second order.

    At both ends of an axis they are one-sided differences of first order.

    Args:
        f: samples on a grid, at least 2 along each of the axes.
        *varargs: nothing, for samples at distance 1; one distance for all axes; or for each of the
            axes a distance, or a vector of the coordinates of the samples.
        axis: axis or axes to differentiate along; all by default.
        edge_order: 1 or None.

    Returns:
        Array of the shape of ``f`` for a single axis, else a list of them.

    Raises:
        BadArgument: an axis has fewer than 2 samples; the number of distances is not that of the
            axes; ``edge_order`` is not 1.
        IllTyped: coordinates are not a vector with one for each sample.

    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    if edge_order not in (None, 1):
        raise BadArgument("gradient has one-sided differences of order 1", "1", repr(edge_order))
    x = as_value(f, "the argument of gradient")
    dtype, weak = pr.inexact(x.dtype, False)
    x = pr.converted(x, dtype, weak)
    axes = plain_axes(axis, x.ndim, "gradient")
    if len(varargs) not in (0, 1, len(axes)):
        raise BadArgument(
            "gradient expects one distance, or one for each axis",
            expected=f"0, 1 or {len(axes)}",
            found=str(len(varargs)),
        )
    spacings = varargs or (1.0,)
    spacings = spacings if len(spacings) == len(axes) else spacings * len(axes)
    found = [_slope(x, h, i) for h, i in zip(spacings, axes, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope(x: Array, spacing: ArrayLike, axis: int) -> Array:
    n = x.shape[axis]
    if n < 2:
        raise BadArgument("gradient expects samples along each axis", "at least 2", str(n))
    h = as_value(spacing, "a distance of gradient")
    if h.ndim and h.shape != (n,):
        raise IllTyped(
            "gradient expects a coordinate for each sample", f"shape ({n},)", str(h.type)
        )
    steps = _steps(h, n, axis, x)
    rise = diff(x, axis=axis) / steps
    first, last = slice_along(rise, axis, 0, 1), slice_along(rise, axis, n - 2, n - 1)
    if n == 2:
        return concatenate([first, last], axis)
    left, right = slice_along(rise, axis, 0, n - 2), slice_along(rise, axis, 1, n - 1)
    if not h.ndim:
        return concatenate([first, (left + right) / 2, last], axis)
    before, after = slice_along(steps, axis, 0, n - 2), slice_along(steps, axis, 1, n - 1)
    inner = (left * after + right * before) / (before + after)
    return concatenate([first, inner, last], axis)


def _steps(h: Array, n: int, axis: int, like: Array) -> Array:
    """Return distances of adjacent samples, which broadcast along the axis."""
    h = uf.astype(h, like.dtype)
    if not h.ndim:
        return h
    return reshape(diff(h), [n - 1 if i == axis else 1 for i in range(like.ndim)])


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return the integral of a sampled function by the trapezoidal rule.

    Args:
        y: samples.
        x: coordinates of the samples: a vector, or an array that broadcasts with ``y``.
        dx: distance of the samples, where ``x`` is None.
        axis: axis of the samples.

    Returns:
        Inexact array without the axis.

    Raises:
        IllTyped: ``x`` has another number of coordinates than there are samples.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    operands = [as_value(y, "the samples of trapezoid"), as_value(dx if x is None else x)]
    values, places = pr.in_common_dtype(operands, "trapezoid", must_be_inexact=True)
    at = plain_axis(axis, values.ndim, "trapezoid")
    n = values.shape[at]
    if n < 2:
        return sum(slice_along(values, at, 0, 0), at)
    if x is not None:
        if places.ndim == 1:
            places = reshape(places, [-1 if i == at else 1 for i in range(values.ndim)])
        along = plain_axis(axis, places.ndim, "trapezoid")
        if places.shape[along] != n:
            raise IllTyped(
                "trapezoid expects a coordinate for each sample", str(n), str(places.type)
            )
        places = diff(places, axis=along)
    pairs = slice_along(values, at, 1, n) + slice_along(values, at, 0, n - 1)
    return sum(places * pairs, at) / 2


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Return phases with multiples of the period added, so that jumps are at most half of it.

    Args:
        p: phases.
        discont: jump from which on a period is added, half of the period by default and at least.
        axis: axis along which phases follow each other.
        period: period, 2 pi by default.

    Returns:
        Array of the shape of ``p``; of integers if phases and period are.

    >>> jnp.unwrap(jnp.array([0, 1, 2, -1, 0]), period=4)
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    operands = [as_value(p, "the phases of unwrap"), as_value(period, "the period of unwrap")]
    x, whole = pr.in_common_dtype(operands, "unwrap")
    at = plain_axis(axis, x.ndim, "unwrap")
    n = x.shape[at]
    if not n:
        return x
    steps = diff(x, axis=at)
    half = whole // 2 if is_integer(x.dtype) else whole / 2
    small = remainder(steps + half, whole) - half
    # A jump of exactly half of the period keeps its direction, where half of it is exact.
    ambiguous = (small == -half) & (steps > 0) & (half + half == whole)
    small = where(ambiguous, half, small)
    limit = half if discont is None else uf.maximum(half, as_value(discont))
    added = where(uf.abs(steps) < limit, 0, small - steps)
    return concatenate(
        [slice_along(x, at, 0, 1), slice_along(x, at, 1, n) + cumsum(added, at, x.dtype)], at
    )
