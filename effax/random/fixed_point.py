"""Gumbel samples of 64 random bits, in single precision.

The bits are a number of 64 digits in [0, 1). Floats are dense near 0 and coarse near 1, so numbers
of more than 1/2 are replaced by their distance from 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from effax.arrays.array import Array
from effax.arrays.shapes import slice_along
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.bits import bitcast_convert_type
from effax.random.generators import random_bits

_MANTISSA: Final = 23
_BIAS: Final = 126
"""The biased exponent of the floats of [1/2, 1)."""


def gumbel_of_64_bits(key: Array, shape: Shape) -> Array:
    """Return samples of the standard Gumbel distribution, ``-log(-log(u))``, in float32."""
    pair = random_bits(key, (2, *shape), 32)
    high, low = (slice_along(pair, 0, i, i + 1, drop=True) for i in range(2))
    below = el.lt(high, 1 << 31)
    # 1 - u in 64 digits: the complement plus one, with its carry.
    rest_low = el.add(el.bitwise_not(low), 1)
    carry = el.convert_element_type(el.eq(el.bitwise_not(low), 0xFFFFFFFF), np.uint32)
    rest_high = el.add(el.bitwise_not(high), carry)
    small = _as_float(el.select(below, high, rest_high), el.select(below, low, rest_low))
    logarithm = el.select(below, el.log1p(el.neg(small)), el.log(small))
    return el.neg(el.log(el.neg(logarithm)))


def _as_float(high: Array, low: Array) -> Array:
    """Return a fraction of 64 digits as a float32, rounded towards 0."""
    empty = el.eq(high, 0)
    zeros = el.select(empty, _leading_zeros(low), _leading_zeros(high))
    from_low = el.select(empty, el.shift_left(low, zeros), _above(low, zeros))
    digits = el.bitwise_or(el.shift_left(high, zeros), from_low)
    mantissa = el.bitwise_and(el.shift_right_logical(digits, 8), (1 << _MANTISSA) - 1)
    all_zeros = el.select(empty, el.add(zeros, 32), zeros)
    exponent = el.shift_left(el.sub(np.uint32(_BIAS), all_zeros), _MANTISSA)
    kept = el.bitwise_and(exponent, (1 << 30) - (1 << 22))
    return bitcast_convert_type(el.bitwise_or(kept, mantissa), np.float32)


def _above(low: Array, zeros: Array) -> Array:
    """Return the digits of the lower word that a shift by ``zeros`` moves into the upper one."""
    return el.shift_right_logical(low, el.sub(np.uint32(32), zeros))


def _leading_zeros(x: Array) -> Array:
    for n in (1, 2, 4, 8, 16):
        x = el.bitwise_or(x, el.shift_right_logical(x, n))
    return el.sub(np.uint32(32), el.population_count(x))
