"""Generators that take their bits from XLA: ``rbg`` and ``unsafe_rbg``.

A key is four 32-bit words: two keys of Threefry, from which ``rbg`` derives new keys, and together
a state of XLA's generator, from which bits are taken. ``unsafe_rbg`` derives new keys from that
generator too, which is faster and not known to be safe.
"""

from __future__ import annotations

import math
from typing import Final

from effax.arrays.array import Array
from effax.arrays.binding import bind
from effax.arrays.shapes import reshape, slice_along
from effax.ir.dtypes import as_dtype
from effax.ir.prims import RngBitGenerator
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.numpy.join import concatenate
from effax.random import threefry
from effax.random.threefry import Width


def words_of_seed(seed: Array) -> Array:
    """Return the key of an integer: that of Threefry, twice."""
    part = threefry.words_of_seed(seed)
    return concatenate([part, part])


def _parts(key: Array) -> list[Array]:
    return [slice_along(key, 0, i, i + 2) for i in (0, 2)]


def split_key(key: Array, shape: Shape) -> Array:
    """Return new keys, along the last axis of the result."""
    return concatenate([threefry.split_key(part, shape) for part in _parts(key)], -1)


def fold_key(key: Array, data: Array) -> Array:
    """Return a new key derived from a key and a word."""
    return concatenate([threefry.fold_key(part, data) for part in _parts(key)])


def random_bits(key: Array, width: Width, shape: Shape) -> Array:
    """Return random unsigned integers of ``width`` bits."""
    bits = bind(RngBitGenerator(as_dtype(f"uint{width}"), shape), key)[1]
    assert isinstance(bits, Array)
    return bits


SKIPPED: Final = 10
"""Keys are derived from every tenth state, as if the states between were rounds of a hash."""


def split_unsafely(key: Array, shape: Shape) -> Array:
    """Return new keys from the generator's bits."""
    count = math.prod(shape)
    states = random_bits(key, 32, (count, SKIPPED, 4))
    return reshape(slice_along(states, 1, 0, 1), (*shape, 4))


def fold_unsafely(key: Array, data: Array) -> Array:
    """Return a new key derived from a key and a word, by the generator's bits."""
    states = random_bits(words_of_seed(data), 32, (SKIPPED, 4))
    return el.bitwise_xor(key, slice_along(states, 0, SKIPPED - 1, SKIPPED, drop=True))
