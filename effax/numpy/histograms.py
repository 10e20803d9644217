"""Histograms: counts of samples, or sums of their weights, in bins."""

from __future__ import annotations

from collections.abc import Sequence

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import nonnegative
from effax.arrays.conversion import as_value
from effax.arrays.creation import ones, zeros
from effax.arrays.joining import stack, unstack
from effax.arrays.placed import on_device
from effax.arrays.shapes import expand_dims, ravel, reshape
from effax.ir.dtypes import DType, is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy import ufuncs as uf
from effax.numpy.positions import where
from effax.numpy.ranges import arange
from effax.numpy.reduce import max as max_
from effax.numpy.reduce import min as min_
from effax.numpy.reduce import sum
from effax.numpy.sorting import diff, searchsorted

__all__ = [
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip

Range = Sequence[ArrayLike] | Array
"""The lower and upper end of the bins."""


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Range | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the edges of the bins of a histogram.

    Args:
        a: samples.
        bins: number of bins of equal width, or their edges in ascending order.
        range: lower and upper end; those of the samples by default.
        weights: no effect.

    Returns:
        Vector of edges, one more than bins.

    Raises:
        BadArgument: there are no bins, or ``bins`` names a method.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise BadArgument("methods to choose bins are not supported", "a number or edges", bins)
    edges = as_value(bins, "the bins of a histogram")
    samples = ravel(as_value(a, "the samples of a histogram"))
    dtype = pr.inexact(samples.dtype, False)[0]
    if edges.ndim == 1:
        return uf.astype(edges, dtype)
    if edges.ndim or is_inexact_dtype(edges.dtype):
        raise IllTyped("expected a number of bins or a vector of edges", found=str(edges.type))
    count = nonnegative(int(edges), "the number of bins")
    if not count:
        raise BadArgument("a histogram expects bins", "at least one", "0")
    low, high = _ends(samples, range, dtype)
    # Edges are multiples of a width, as in NumPy: 0 is exact between -2 and 4.
    return (low + arange(count + 1, dtype=dtype) * ((high - low) / count)).at[count].set(high)


def _ends(samples: Array, given: Range | None, dtype: DType) -> tuple[Array, Array]:
    """Return the ends of the bins; around a single value, half a unit to both sides."""
    if given is not None:
        low, high = (uf.astype(as_value(end), dtype) for end in (given[0], given[1]))
    elif samples.size:
        low, high = (uf.astype(f(samples), dtype) for f in (min_, max_))
    else:
        low, high = (uf.astype(as_value(end), dtype) for end in (0, 1))
    same = low == high
    return where(same, low - 0.5, low), where(same, high + 0.5, high)


def _bin(edges: Array, samples: Array) -> tuple[Array, Array]:
    """Return the bin of each sample, and whether it is in one; the last bin has both ends."""
    n = edges.size - 1
    at = searchsorted(edges, samples, side="right") - 1
    at = where(samples == edges[n], n - 1, at)
    return at, (at >= 0) & (at < n) & (samples == samples)  # noqa: PLR0124  nan is in no bin


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Range | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: object = None,
) -> tuple[Array, Array]:
    """Return the number of samples in each bin, and the edges of the bins.

    Args:
        a: samples.
        bins: number of bins of equal width, or their edges in ascending order.
        range: lower and upper end; those of the samples by default. Samples outside are left out.
        weights: weights of the samples, in their shape, whose sums are returned.
        density: whether counts are divided by their sum and the widths of bins.
        out_sharding: sharding of the counts.

    Returns:
        Vector of floating counts, and vector of one edge more.

    Raises:
        IllTyped: weights do not have the shape of the samples.
        BadArgument: there are no bins, or ``bins`` names a method.

    >>> jnp.histogram(jnp.array([0.0, 1.0, 1.5, 4.0]), 2)
    (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    samples = as_value(a, "the samples of histogram")
    edges = histogram_bin_edges(samples, bins, range, weights)
    counted, _ = _counted([ravel(samples)], [edges], weights, samples, density)
    return on_device(counted, out_sharding, "histogram"), edges


def _counted(
    samples: Sequence[Array],
    edges: list[Array],
    weights: ArrayLike | None,
    like: Array,
    density: bool | None,
) -> tuple[Array, list[Array]]:
    """Return counts in the grid of bins."""
    amounts = ones(like.shape, edges[0].dtype) if weights is None else as_value(weights)
    if amounts.shape != like.shape:
        raise IllTyped(
            "a histogram expects a weight for each sample", str(like.type), str(amounts.type)
        )
    amounts = ravel(uf.astype(amounts, pr.inexact(amounts.dtype, False)[0]))
    places = [_bin(e, uf.astype(x, e.dtype)) for e, x in zip(edges, samples, strict=True)]
    inside = places[0][1]
    for _, there in places[1:]:
        inside = inside & there
    shape = tuple(e.size - 1 for e in edges)
    amounts = where(inside, amounts, 0)
    counted = zeros(shape, amounts.dtype).at[tuple(at for at, _ in places)].add(amounts)
    if density:
        counted = counted / sum(counted)
        for i, e in enumerate(edges):
            along = [1] * len(edges)
            along[i] = -1
            counted = counted / reshape(diff(e), along)
    return counted, edges


def _for_each(bins: ArrayLike | Sequence[ArrayLike], count: int) -> list[ArrayLike]:
    """Return the bins of each axis."""
    if isinstance(bins, (list, tuple)):
        given: list[ArrayLike] = list(bins)
    else:
        value = as_value(bins, "the bins of a histogram")
        given = list(unstack(value)) if value.ndim else [value] * count
    if len(given) != count:
        raise BadArgument("a histogram expects bins for each axis", str(count), str(len(given)))
    return given


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Range | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Return the number of points in each bin of a grid, and its edges along both axes.

    Args:
        x: vector of the first coordinates.
        y: vector of the second coordinates.
        bins: number of bins along each axis, edges for both, or a pair of either.
        range: a pair of ends for each axis, or None.
        weights: weight of each point.
        density: whether counts are divided by their sum and the areas of bins.

    Returns:
        Matrix of floating counts, and two vectors of edges.

    Raises:
        IllTyped: the vectors differ in size.

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), 2)[0]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    points = stack([as_value(x, "a coordinate"), as_value(y, "a coordinate")], 1)
    if isinstance(bins, Array) and bins.ndim and bins.size > 2:
        bins = [bins, bins]
    counted, (first, second) = histogramdd(points, bins, range, weights, density)
    return counted, first, second


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Range | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Return the number of points in each bin of a grid of any dimension, and its edges.

    Args:
        sample: points as rows; or a list of vectors, of the coordinates along each axis.
        bins: number of bins along each axis, or a sequence of numbers or edges.
        range: a pair of ends for each axis, or None.
        weights: weight of each point.
        density: whether counts are divided by their sum and the volumes of bins.

    Returns:
        Array of floating counts, and a list of vectors of edges.

    Raises:
        IllTyped: points are not the rows of a matrix.
        BadArgument: bins or ranges are not given for each axis.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(sample, (list, tuple)):
        points = stack([as_value(x, "a coordinate") for x in sample], 1)
    else:
        points = as_value(sample, "the points of histogramdd")
    points = expand_dims(points, 1) if points.ndim == 1 else points
    if points.ndim != 2:
        raise IllTyped("histogramdd expects points as rows", "2 axes", str(points.type))
    columns = unstack(points, axis=1)
    each = _for_each(bins, len(columns))
    ranges = [None] * len(columns) if range is None else list(range)
    if len(ranges) != len(columns):
        raise BadArgument(
            "histogramdd expects a range for each axis", str(len(columns)), str(len(ranges))
        )
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, ranges, strict=True)]
    return _counted(columns, edges, weights, columns[0], density)
