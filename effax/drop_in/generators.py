"""Generators of random bits, under the names of ``jax.extend.random``."""

from __future__ import annotations

from typing import Final

from effax.arrays.array import Array, ArrayLike
from effax.random import key

__all__ = [
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]

threefry_prng_impl: Final = "threefry2x32"
rbg_prng_impl: Final = "rbg"
unsafe_rbg_prng_impl: Final = "unsafe_rbg"


def seed_with_impl(impl: str, seed: ArrayLike) -> Array:
    """Return the key of a seed, for a generator."""
    return key(seed, impl=impl)


def random_seed(seeds: ArrayLike, impl: str) -> Array:
    """Return the key of a seed, for a generator."""
    return key(seeds, impl=impl)
