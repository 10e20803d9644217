"""Random orders, positions and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from effax.arrays.binding import bind
from effax.arrays.device_array import Array, ArrayLike, as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Sort
from effax.ir.types import Shape
from effax.lax.reduce import top_k
from effax.numpy import promotion as pr
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_axis, plain_shape, static_int
from effax.numpy.creation import zeros
from effax.numpy.index import take
from effax.numpy.ranges import arange
from effax.numpy.reduce import argmax, cumsum
from effax.numpy.shapes import expand_dims, moveaxis, reshape, slice_along, transpose
from effax.numpy.sorting import searchsorted
from effax.random.distributions import gumbel, randint, uniform
from effax.random.keys import checked, two
from effax.random.threefry import random_bits

ShapeLike = int | Sequence[int]


def permutation(
    key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False
) -> Array:
    """The parts of ``x`` along an axis in random order; of an integer, of ``arange(x)``.

    Args:
        key: the key.
        x: an array, or the number of parts.
        axis: along which axis.
        independent: whether each line along the axis has an order of its own.
    """
    parent = checked(key, "permutation")
    if not pr.shape_of(x):
        return _shuffled(parent, arange(static_int(x, "x of permutation")), 0)
    value = as_value(x, "x of permutation")
    place = plain_axis(axis, value.ndim, "permutation")
    if independent or value.ndim == 1:
        return _shuffled(parent, value, place)
    return take(value, _shuffled(parent, arange(value.shape[place]), 0), place)


def _shuffled(key: Array, x: Array, axis: int) -> Array:
    """Sorted by random keys, so often that equal keys leave no trace in the order."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
        key, sub = two(key)
        order = random_bits(sub, x.shape, 32)
        x = cast("list[Array]", bind(Sort(axis), order, x))[1]
    return x


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Positions along an axis, with probabilities proportional to exp of the logits.

    Args:
        key: the key.
        logits: unnormalised logarithms of probabilities.
        axis: along which they are given.
        shape: of the result; it ends with the shape of the logits without the axis.
        replace: whether a position may be drawn again, along the leading axes of the shape.
        mode: of :func:`gumbel`.
    """
    scores = as_value(logits, "the logits")
    place = plain_axis(axis, scores.ndim, "categorical")
    batch = scores.shape[:place] + scores.shape[place + 1 :]
    sizes = batch if shape is None else plain_shape(shape, "categorical")
    lead = sizes[: len(sizes) - len(batch)]
    if pr.broadcast_shapes([sizes, batch], "categorical") != sizes:
        raise IllTyped("categorical gives a shape that ends as its batch", str(batch), str(sizes))
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
            "more is drawn than there is",
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
    """Samples of the parts of an array along an axis; of an integer, of ``arange(a)``.

    Args:
        key: the key.
        a: an array, or the number of parts.
        shape: of the samples.
        replace: whether a part may be drawn again.
        p: the probabilities of the parts, equal ones by default.
        axis: along which axis.
        mode: of :func:`gumbel`.

    Raises:
        BadArgument: more is drawn than there is, or there is nothing.
    """
    sizes = plain_shape(shape, "choice")
    parts = None if not pr.shape_of(a) else as_value(a, "a of choice")
    place = 0 if parts is None else plain_axis(axis, parts.ndim, "choice")
    n = static_int(a, "a of choice") if parts is None else parts.shape[place]
    count = math.prod(sizes)
    if count == 0:
        return zeros(sizes, int if parts is None else parts.dtype)
    if n <= 0 or (not replace and count > n):
        raise BadArgument("more is drawn than there is", f"at most {n}", str(count))
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
        raise IllTyped("choice takes one probability a part", f"shape {(n,)}", str(chances.type))
    if replace:
        ends = cumsum(chances)
        total = slice_along(ends, 0, n - 1, n, drop=True)
        at = uf.multiply(uf.subtract(1, uniform(key, shape, ends.dtype)), total)
        return searchsorted(ends, at)
    noisy = uf.add(gumbel(key, (n,), chances.dtype, mode), uf.log(chances))
    return top_k(noisy, math.prod(shape))[1]
