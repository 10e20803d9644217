"""The counter-based generator Threefry-2x32, whose bits are JAX's.

A key is two 32-bit words. The hash of a key and a counter of two words is two words; arrays of
random bits are the hashes of 0, 1, 2, ... In a program that is one call of a program of its own,
labelled ``threefry2x32``; a call with known values runs on NumPy.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import bind1
from effax.arrays.conversion import from_numpy
from effax.arrays.creation import zeros
from effax.arrays.device_array import DeviceArray
from effax.ir.build import Builder, lit
from effax.ir.dtypes import UINT32, as_dtype
from effax.ir.errors import BadArgument
from effax.ir.prims import (
    Concatenate,
    ConvertElementType,
    ExpandDims,
    Iota,
    Jit,
    Or,
    Reshape,
    ShiftLeft,
    ShiftRightLogical,
    Slice,
    Squeeze,
    Xor,
)
from effax.ir.state import cached
from effax.ir.syntax import Atom
from effax.ir.trace import current_trace
from effax.ir.types import Shape, array_type
from effax.lax import elementwise as el
from effax.lax.threefry import PARITY, ROTATIONS, WORD_TYPE, Words, emit_hash, word
from effax.numpy import ufuncs as uf
from effax.numpy.join import stack

Width = Literal[8, 16, 32, 64]

_LABEL: Final = "threefry2x32"
_KEY_TYPE: Final = array_type((2,), UINT32)
# Chunks of this size stay in the processor's cache.
_CHUNK: Final = 1 << 14


def words_of_seed(seed: Array) -> Array:
    """Return the key of an integer: its upper word, 0 for 32 bits or fewer, and its lower one."""
    if isinstance(seed, DeviceArray) and current_trace() is None:
        number = int(seed.numpy())
        high = number >> 32 if seed.dtype.itemsize == 8 else 0
        return from_numpy(np.array([high & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32))
    low, upper = uf.astype(seed, np.uint32), zeros((), np.uint32)
    if seed.dtype.itemsize == 8:
        upper = uf.astype(el.shift_right_logical(seed, 32), np.uint32)
    return stack([upper, low])


def random_bits(key: Array, width: Width, shape: Shape) -> Array:
    """Return random unsigned integers of ``width`` bits."""
    if current_trace() is None and isinstance(key, DeviceArray):
        if math.prod(shape) >= 1 << 32:
            raise BadArgument(
                "an array of random bits is too large", "less than 2**32 elements", str(shape)
            )
        first, second = _hashed_counts(key.numpy(), math.prod(shape))
        return from_numpy(_words_as(first, second, width).reshape(shape))
    return bind1(bits_program(shape, width), key)


def split_key(key: Array, shape: Shape) -> Array:
    """Return new keys, along the last axis of the result."""
    if current_trace() is None and isinstance(key, DeviceArray):
        words = _hashed_counts(key.numpy(), math.prod(shape))
        return from_numpy(np.stack(words, 1).reshape(*shape, 2))
    return bind1(split_program(shape), key)


def fold_key(key: Array, data: Array) -> Array:
    """Return a new key derived from a key and a word."""
    if current_trace() is None and isinstance(key, DeviceArray) and isinstance(data, DeviceArray):
        return from_numpy(np.concatenate(_hash(key.numpy(), data.numpy().reshape(1))))
    return bind1(fold_program(), key, data)


def _hash(key: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of each counter, whose high word is 0, on NumPy."""
    words = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY)]
    with np.errstate(over="ignore"):
        a, b = np.full_like(low, words[0]), low + words[1]
        turned = np.empty_like(b)
        for block in range(5):
            for r in ROTATIONS[block % 2]:
                a += b
                np.left_shift(b, np.uint32(r), out=turned)
                b >>= np.uint32(32 - r)
                b |= turned
                b ^= a
            a += words[(block + 1) % 3]
            b += words[(block + 2) % 3] + np.uint32(block + 1)
    return a, b


def _hashed_counts(key: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of 0, 1, 2, ..."""
    first, second = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for start in range(0, count, _CHUNK):
        stop = min(start + _CHUNK, count)
        low = np.arange(start, stop, dtype=np.uint32)
        first[start:stop], second[start:stop] = _hash(key, low)
    return first, second


def _words_as(first: np.ndarray, second: np.ndarray, width: Width) -> np.ndarray:
    if width == 64:
        return np.asarray((first.astype(np.uint64) << np.uint64(32)) | second)
    return np.asarray(first ^ second, np.dtype(f"uint{width}"))


@cached(maxsize=1 << 10)
def bits_program(shape: Shape, width: Width) -> Jit:
    """Return the call from a key to random bits."""
    b = Builder([_KEY_TYPE])
    first, second = _emit_counts(b, shape)
    if width == 64:
        wide = as_dtype("uint64")
        high = b(ConvertElementType(wide), first)
        low = b(ConvertElementType(wide), second)
        bits = b(Or(), b(ShiftLeft(), high, lit(32, array_type((), wide))), low)
    else:
        bits = b(Xor(), first, second)
        if width != 32:
            bits = b(ConvertElementType(as_dtype(f"uint{width}")), bits)
    return Jit(b.finish([bits], names=("key",)), _LABEL)


@cached(maxsize=1 << 10)
def split_program(shape: Shape) -> Jit:
    """Return the call from a key to new keys."""
    b = Builder([_KEY_TYPE])
    return Jit(
        b.finish([_emit_joined(b, *_emit_counts(b, shape), len(shape))], names=("key",)), _LABEL
    )


@cached(maxsize=1)
def fold_program() -> Jit:
    """Return the call from a key and a word to a new key."""
    b = Builder([_KEY_TYPE, WORD_TYPE])
    key, word = b.binders
    hashed = emit_hash(b, _emit_words(b, key), word)
    return Jit(b.finish([_emit_joined(b, *hashed, 0)], names=("key", "data")), _LABEL)


def _emit_words(b: Builder, key: Atom) -> Words:
    parts = [b(Squeeze((0,)), b(Slice((i,), (i + 1,)), key)) for i in range(2)]
    return parts[0], parts[1]


def _emit_counts(b: Builder, shape: Shape) -> Words:
    """Emit the hashes of 0, 1, 2, ... in row-major order."""
    size, key = math.prod(shape), _emit_words(b, b.binders[0])
    if not shape:
        return emit_hash(b, key, word(0))
    if size < 1 << 32:
        return emit_hash(b, key, _in_shape(b, b(Iota(UINT32, (size,), 0)), shape))
    count = _in_shape(b, b(Iota(as_dtype("uint64"), (size,), 0)), shape)
    high = b(ShiftRightLogical(), count, lit(32, array_type((), as_dtype("uint64"))))
    words = [b(ConvertElementType(UINT32), x) for x in (count, high)]
    return emit_hash(b, key, *words)


def _in_shape(b: Builder, x: Atom, shape: Shape) -> Atom:
    return b(Reshape(shape), x) if len(shape) > 1 else x


def _emit_joined(b: Builder, first: Atom, second: Atom, axis: int) -> Atom:
    pair = [b(ExpandDims((axis,)), x) for x in (first, second)]
    return b(Concatenate(axis), *pair)
