"""Generators of random bits: their keys, and what is derived from a key.

A key is an array of the generator's dtype and of shape ``()``, or its words: ``PRNGKey`` returns
these, and they belong to the default generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1
from effax.arrays.config import config
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.device_array import DeviceArray
from effax.ir.dtypes import as_key_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.key_dtype import RBG, THREEFRY, UNSAFE_RBG, KeyDType, records_of, words_of
from effax.ir.prims import RandomUnwrap, RandomWrap
from effax.ir.trace import current_trace
from effax.ir.types import Shape
from effax.random import rbg, threefry
from effax.random.threefry import Width

WordsOfSeed = Callable[[Array], Array]
SplitWords = Callable[[Array, Shape], Array]
FoldWords = Callable[[Array, Array], Array]
BitsOfWords = Callable[[Array, Width, Shape], Array]


@dataclass(frozen=True)
class Generator:
    """A generator of random bits, as functions of the words of a key.

    Attributes:
        dtype: the dtype of its keys.
        seed: the words of an integer, given as a scalar.
        split: the words of new keys, for a shape of these.
        fold_in: the words of a new key, from a ``uint32``.
        random_bits: unsigned integers of a width and shape.
    """

    dtype: KeyDType
    seed: WordsOfSeed = field(repr=False)
    split: SplitWords = field(repr=False)
    fold_in: FoldWords = field(repr=False)
    random_bits: BitsOfWords = field(repr=False)

    @property
    def name(self) -> str:
        """Its name, such as "threefry2x32"."""
        return self.dtype.impl

    def __hash__(self) -> int:
        return hash(self.dtype)


_generators: Final[dict[KeyDType, Generator]] = {}


def register(generator: Generator) -> Generator:
    """Keep a generator: keys of its dtype are its keys from now on."""
    _generators[generator.dtype] = generator
    return generator


register(
    Generator(
        THREEFRY,
        threefry.words_of_seed,
        threefry.split_key,
        threefry.fold_key,
        threefry.random_bits,
    )
)
register(Generator(RBG, rbg.words_of_seed, rbg.split_key, rbg.fold_key, rbg.random_bits))
register(
    Generator(UNSAFE_RBG, rbg.words_of_seed, rbg.split_unsafely, rbg.fold_unsafely, rbg.random_bits)
)

NAMES: Final = ("threefry2x32", "rbg", "unsafe_rbg")
"""The generators that a name selects."""


def generator(which: object) -> Generator:
    """Return the generator of a name, of a dtype of keys, or itself; the default one for None.

    Raises:
        BadArgument: no generator has the name.
        IllTyped: ``which`` is none of these.
    """
    if which is None:
        return default_generator()
    if isinstance(which, Generator):
        return which
    dtype = as_key_dtype(which)
    if dtype is not None and dtype in _generators:
        return _generators[dtype]
    if not isinstance(which, str):
        raise IllTyped(
            "a generator of random bits is given by its name or by the dtype of its keys",
            expected=" or ".join(map(repr, NAMES)),
            found=f"{which!r:.80}",
        )
    for found in _generators.values():
        if found.name == which and which in NAMES:
            return found
    raise BadArgument(
        f"unrecognized generator of random bits: {which!r}",
        expected=" or ".join(map(repr, NAMES)),
        found=repr(which),
    )


def default_generator() -> Generator:
    """Return the generator of words that are given as a key (``config.default_prng_impl``)."""
    return generator(config.read("default_prng_impl"))


def is_key(x: object) -> bool:
    """Return whether ``x`` is an array of keys, not of words."""
    return isinstance(x, Array) and isinstance(x.type.dtype, KeyDType)


def wrapped(words: Array, of: Generator) -> Array:
    """Return words as keys. Raises IllTyped where they are not words of the generator's keys."""
    if isinstance(words, DeviceArray) and current_trace() is None:
        RandomWrap(of.dtype.tag).typing(words.type)
        return from_numpy(records_of(words.numpy(), of.dtype))
    return bind1(RandomWrap(of.dtype.tag), words)


def words_and_generator(keys: Array) -> tuple[Array, Generator]:
    """Return the words of keys, and their generator; words are those of the default one."""
    dtype = cast(object, keys.type.dtype)
    if not isinstance(dtype, KeyDType):
        return keys, default_generator()
    if isinstance(keys, DeviceArray) and current_trace() is None:
        return from_numpy(words_of(keys.numpy(), dtype)), _generators[dtype]
    return bind1(RandomUnwrap(), keys), _generators[dtype]


def checked(key: ArrayLike, what: str) -> Array:
    """Return one key, or the words of one. Raises IllTyped for anything else."""
    value = as_value(key, f"the key of {what}")
    if is_key(value):
        if value.type.shape:
            raise IllTyped(
                f"{what} takes one key",
                expected="a key, of shape ()",
                found=str(value.type),
                remedy="use `vmap` for many keys",
            )
        return value
    words = default_generator().dtype.words
    if value.dtype != np.uint32 or value.shape != words:
        raise IllTyped(
            f"{what} takes one key",
            expected=f"a key, as `random.key` returns, or its words, {_shown(words)}",
            found=str(value.type),
            remedy="use `vmap` for many keys" if value.shape[-len(words) :] == words else None,
        )
    return value


def _shown(words: Shape) -> str:
    return f"u32[{','.join(map(str, words))}]"


def random_bits(key: Array, shape: Shape, width: Width) -> Array:
    """Return random unsigned integers of ``width`` bits."""
    words, of = words_and_generator(key)
    return of.random_bits(words, width, shape)


def split_keys(key: Array, shape: Shape) -> Array:
    """Return new keys, or words of new keys if ``key`` is words."""
    words, of = words_and_generator(key)
    made = of.split(words, shape)
    return wrapped(made, of) if is_key(key) else made


def fold_keys(key: Array, data: Array) -> Array:
    """Return a new key derived from a key and a ``uint32``; words if ``key`` is words."""
    words, of = words_and_generator(key)
    made = of.fold_in(words, data)
    return wrapped(made, of) if is_key(key) else made
