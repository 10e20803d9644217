"""The hash of Threefry-2x32, and XLA's generator of random bits by it.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); XLA's ``prng.cc`` for
the order of the bits.
"""

from __future__ import annotations

import math
from typing import Final

from effax.arrays.array import Array
from effax.arrays.binding import run
from effax.arrays.shapes import broadcast_to, reshape, slice_along
from effax.ir.build import Builder, lit
from effax.ir.dtypes import UINT32, DType, as_dtype
from effax.ir.prims import Add, Or, ShiftLeft, ShiftRightLogical, Xor
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import Shape, array_type
from effax.lax import elementwise as el
from effax.lax.creation import iota
from effax.lax.shape import concatenate, expand_dims

Words = tuple[Atom, Atom]

ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: Final = 0x1BD11BDA
WORD_TYPE: Final = array_type((), UINT32)


def word(value: int) -> Lit:
    """Return a literal word."""
    return lit(value, WORD_TYPE)


def emit_hash(b: Builder, key: Words, low: Atom, high: Atom | None = None) -> Words:
    """Emit the hash of each counter, whose high word is 0 where it is None."""
    parity = b(Xor(), b(Xor(), key[0], key[1]), word(PARITY))
    words = (key[0], key[1], parity)
    first: Atom = words[0] if high is None else b(Add(), high, words[0])
    second: Atom = b(Add(), low, words[1])
    for block in range(5):
        for r in ROTATIONS[block % 2]:
            first = b(Add(), first, second)
            left = b(ShiftLeft(), second, word(r))
            right = b(ShiftRightLogical(), second, word(32 - r))
            second = b(Xor(), b(Or(), left, right), first)
        first = b(Add(), first, words[(block + 1) % 3])
        step = b(Add(), words[(block + 2) % 3], word(block + 1))
        second = b(Add(), second, step)
    return first, second


@cached(maxsize=1 << 8)
def _hash_program(shape: Shape) -> Jaxpr:
    """Return the program from two words of a key and two words of each counter to their hashes."""
    words = array_type(shape, UINT32)
    b = Builder([WORD_TYPE, WORD_TYPE, words, words])
    one, two, low, high = b.binders
    return b.finish(emit_hash(b, (one, two), low, high))


def bits_of_state(state: Array, shape: Shape, dtype: DType) -> tuple[Array, Array]:
    """Return the next state, and random bits: hashes of the counter in the state's last two words.

    Both words of a hash are one result of 64 bits, or two of at most 32 bits, neighbours along the
    first axis of even size, else along the longest.
    """
    key, low, high = [_word_at(state, i) for i in (0, 1)], _word_at(state, 2), _word_at(state, 3)
    wide = dtype.itemsize == 8
    axis = None if wide or not shape else _halved_axis(shape)
    half = shape if axis is None else (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    size = math.prod(half)
    count = reshape(iota(UINT32, size), half)
    below = el.add(broadcast_to(low, half), count)
    carried = el.convert_element_type(el.lt(below, count), UINT32)
    above = el.add(broadcast_to(high, half), carried)
    first, second = run(_hash_program(half), [*key, above, below])
    after = el.add(low, size)
    carry = el.convert_element_type(el.lt(after, low), UINT32)
    last = [expand_dims(x, (0,)) for x in (after, el.add(high, carry))]
    return concatenate([slice_along(state, 0, 0, 2), *last], 0), _bits(
        first, second, shape, axis, dtype
    )


def _bits(first: Array, second: Array, shape: Shape, axis: int | None, dtype: DType) -> Array:
    if dtype.itemsize == 8:
        low, high = (el.convert_element_type(x, as_dtype("uint64")) for x in (first, second))
        return el.bitwise_or(el.shift_left(high, 32), low)
    if axis is not None:
        pair = [expand_dims(x, (axis + 1,)) for x in (first, second)]
        sizes = (*shape[:axis], 2 * first.shape[axis], *shape[axis + 1 :])
        first = slice_along(reshape(concatenate(pair, axis + 1), sizes), axis, 0, shape[axis])
    return el.convert_element_type(first, dtype)


def _halved_axis(shape: Shape) -> int:
    even = [axis for axis, n in enumerate(shape) if n % 2 == 0]
    return even[0] if even else shape.index(max(shape))


def _word_at(state: Array, i: int) -> Array:
    return slice_along(state, 0, i, i + 1, drop=True)
