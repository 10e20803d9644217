"""The counter-based generator Philox-4x32, as XLA's generator of random bits uses it on CPU.

A state is four 32-bit words: those of the key, which are the upper half of the counter too, and
those of the lower half. Numbers are of 64 bits: NumPy arrays, or objects with their operators.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math
from typing import Any, Final, Protocol, Self, TypeVar

import numpy as np

from effax.ir.types import Shape

MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
STEPS: Final = (0x9E3779B9, 0xBB67AE85)
WORD: Final = 0xFFFFFFFF
ROUNDS: Final = 10


class Word(Protocol):
    """An array of unsigned integers of 64 bits."""

    def __add__(self, other: Self | int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __xor__(self, other: Self | int, /) -> Self: ...
    def __or__(self, other: Self | int, /) -> Self: ...
    def __and__(self, other: Self | int, /) -> Self: ...
    def __rshift__(self, other: int, /) -> Self: ...
    def __lshift__(self, other: int, /) -> Self: ...


N = TypeVar("N", bound=Word)


def hashed(key: tuple[N, N], counter: tuple[N, N, N, N]) -> tuple[N, N, N, N]:
    """Return the four words of the hash of each counter."""
    k0, k1 = key
    x0, x1, x2, x3 = counter
    for _ in range(ROUNDS):
        first, second = x0 * MULTIPLIERS[0], x2 * MULTIPLIERS[1]
        x0, x1 = (second >> 32) ^ x1 ^ k0, second & WORD
        x2, x3 = (first >> 32) ^ x3 ^ k1, first & WORD
        k0, k1 = (k0 + STEPS[0]) & WORD, (k1 + STEPS[1]) & WORD
    return x0, x1, x2, x3


def vectors(shape: Shape, width: int) -> int:
    """Return the number of hashes, of 128 bits, that an array of numbers takes."""
    return -(-math.prod(shape) // (2 if width == 64 else 4))


def random_bits(state: np.ndarray, shape: Shape, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Return unsigned integers, from the state's counter on."""
    words = [np.uint64(w) for w in state]
    width = 8 * dtype.itemsize
    with np.errstate(over="ignore"):
        start, high = words[2] | (words[3] << np.uint64(32)), words[0] | (words[1] << np.uint64(32))
        low = start + np.arange(vectors(shape, width), dtype=np.uint64)
        upper = high + (low < start).astype(np.uint64)
        key: Any = (np.full_like(low, words[0]), np.full_like(low, words[1]))
        counter: Any = (low & WORD, low >> 32, upper & WORD, upper >> 32)
        found = hashed(key, counter)
    several: list[np.ndarray] = joined(found) if width == 64 else list(found)
    flat = np.stack(several, -1).reshape(-1)[: math.prod(shape)]
    return flat.reshape(shape).astype(dtype)


def joined(words: tuple[N, N, N, N]) -> list[N]:
    """Return the two numbers of 64 bits of four words, the lower one first."""
    return [words[0] | (words[1] << 32), words[2] | (words[3] << 32)]


def advanced(state: np.ndarray, shape: Shape, width: int) -> np.ndarray:
    """Return the state after these numbers: the counter's lower half moves on."""
    start = int(state[2]) | (int(state[3]) << 32)
    stop = (start + vectors(shape, width)) & ((1 << 64) - 1)
    return np.array([state[0], state[1], stop & WORD, stop >> 32], np.uint32)
