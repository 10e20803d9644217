"""Random permutations, categories and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import ShapeLike, plain_axis, plain_shape, static_int
from effax.arrays.binding import bind
from effax.arrays.conversion import as_value
from effax.arrays.creation import zeros
from effax.arrays.shapes import expand_dims, moveaxis, reshape, slice_along, transpose
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Sort
from effax.ir.types import Shape
from effax.lax.reduce import top_k
from effax.numpy import ufuncs as uf
from effax.numpy.index import take
from effax.numpy.ranges import arange
from effax.numpy.reduce import argmax, cumsum
from effax.numpy.sorting import searchsorted
from effax.random.arguments import placed
from effax.random.distributions import gumbel
from effax.random.generators import checked, random_bits
from effax.random.keys import two
from effax.random.uniform import randint, uniform

__all__ = ["categorical", "choice", "permutation"]


@placed
def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: object = None,
) -> Array:
    """Return the slices of ``x`` along an axis in random order.

    Args:
        key: random key, or its words.
        x: array, or a size n for ``arange(n)``.
        axis: axis to permute.
        independent: whether each line along the axis is permuted separately.
        out_sharding: sharding of the result.

    Returns:
        Array of the shape and dtype of ``x``.

    >>> random.permutation(random.key(0), 5).shape
    (5,)
    """
    parent = checked(key, "permutation")
    if not pr.shape_of(x):
        plain_axis(axis, 1, "permutation")
        return _shuffled(parent, arange(static_int(x, "x of permutation")), 0)
    value = as_value(x, "x of permutation")
    place = plain_axis(axis, value.ndim, "permutation")
    if independent or value.ndim == 1:
        return _shuffled(parent, value, place)
    return take(value, _shuffled(parent, arange(value.shape[place]), 0), place)


def _shuffled(key: Array, x: Array, axis: int) -> Array:
    """Sort by random keys, often enough that equal keys do not bias the order."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
        key, sub = two(key)
        order = random_bits(sub, x.shape, 32)
        x = cast("list[Array]", bind(Sort(axis), order, x))[1]
    return x


@placed
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return random indices along an axis, with probabilities proportional to ``exp(logits)``.

    Args:
        key: random key, or its words.
        logits: unnormalized log probabilities.
        axis: axis of the categories.
        shape: shape of the result; ends with the shape of ``logits`` without ``axis``.
        replace: whether an index may repeat along the leading axes of ``shape``.
        mode: as in :func:`gumbel`.
        out_sharding: sharding of the result.

    Returns:
        Integer array of shape ``shape``.

    Raises:
        IllTyped: ``shape`` does not end with the batch shape.
        BadArgument: more indices than categories, without replacement.

    >>> random.categorical(random.key(0), jnp.array([-jnp.inf, 0.0]))
    Array(1, dtype=int32)
    """
    scores = as_value(logits, "the logits")
    place = plain_axis(axis, scores.ndim, "categorical")
    batch = scores.shape[:place] + scores.shape[place + 1 :]
    sizes = batch if shape is None else plain_shape(shape, "categorical")
    lead = sizes[: len(sizes) - len(batch)]
    if pr.broadcast_shapes([sizes, batch], "categorical") != sizes:
        raise IllTyped(
            "the shape of categorical must end with its batch shape", str(batch), str(sizes)
        )
    if replace:
        back = place - scores.ndim
        full = list(sizes[len(lead) :])
        full.insert(place, scores.shape[place])
        noise = gumbel(key, (*lead, *full), scores.dtype, mode)
        wide = expand_dims(scores, tuple(range(len(lead)))) if lead else scores
        return argmax(uf.add(noise, wide), back)
    count = math.prod(lead)
    if count > scores.shape[place]:
        raise BadArgument(
            "sample larger than the population",
            f"at most {scores.shape[place]}, without replacement",
            str(count),
        )
    noisy = uf.add(scores, gumbel(key, scores.shape, scores.dtype, mode))
    _, found = top_k(moveaxis(noisy, place, -1), count)
    last = found.ndim - 1
    return reshape(transpose(found, (last, *range(last))), sizes)


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Return random slices of an array along an axis.

    Args:
        key: random key, or its words.
        a: array, or a size n for ``arange(n)``.
        shape: shape of the samples.
        replace: whether a slice may repeat.
        p: probabilities of the slices, uniform by default.
        axis: axis of the slices.
        mode: as in :func:`gumbel`.

    Returns:
        Array in which ``shape`` replaces ``axis``.

    Raises:
        BadArgument: more samples than slices without replacement, or an empty ``a``.
        IllTyped: ``p`` has another shape.

    >>> random.choice(random.key(0), jnp.array([7, 7]), (3,))
    Array([7, 7, 7], dtype=int32)
    """
    if not isinstance(shape, Sequence):
        raise IllTyped("choice takes a sequence as its shape", "`(n,)`", repr(shape))
    sizes = plain_shape(shape, "choice")
    parts = None if not pr.shape_of(a) else as_value(a, "a of choice")
    place = 0 if parts is None else plain_axis(axis, parts.ndim, "choice")
    n = static_int(a, "a of choice") if parts is None else parts.shape[place]
    count = math.prod(sizes)
    if count == 0:
        return zeros(sizes, int if parts is None else parts.dtype)
    if n <= 0 or (not replace and count > n):
        raise BadArgument("sample larger than the population", f"at most {n}", str(count))
    outer = () if parts is None else parts.shape[:place]
    inner = () if parts is None else parts.shape[place + 1 :]
    shape_of_result = (*outer, *sizes, *inner)
    if p is None and not replace:
        order = permutation(key, n if parts is None else parts, place)
        return reshape(slice_along(order, place, 0, count), shape_of_result)
    at = randint(key, sizes, 0, n) if p is None else _weighted(key, n, sizes, replace, p, mode)
    found = at if parts is None else take(parts, at, place)
    return reshape(found, shape_of_result)


def _weighted(
    key: ArrayLike, n: int, shape: Shape, replace: bool, p: ArrayLike, mode: str | None
) -> Array:
    chances = as_value(p, "p of choice")
    chances = pr.converted(chances, *pr.inexact(chances.dtype, False))
    if chances.shape != (n,):
        raise IllTyped(
            "choice takes one probability per element", f"shape {(n,)}", str(chances.type)
        )
    if replace:
        ends = cumsum(chances)
        total = slice_along(ends, 0, n - 1, n, drop=True)
        at = uf.multiply(uf.subtract(1, uniform(key, shape, ends.dtype)), total)
        return searchsorted(ends, at)
    noisy = uf.add(gumbel(key, (n,), chances.dtype, mode), uf.log(chances))
    return top_k(noisy, math.prod(shape))[1]
