"""Random keys, derived from seeds and from other keys."""

from __future__ import annotations

from typing import cast

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_shape, static_int
from effax.arrays.config import config
from effax.arrays.conversion import as_value, from_numpy, is_python_scalar
from effax.arrays.shapes import slice_along
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, IllTyped, NotFitting
from effax.numpy import ufuncs as uf
from effax.random.generators import (
    NAMES,
    Generator,
    checked,
    default_generator,
    fold_keys,
    generator,
    is_key,
    split_keys,
    words_and_generator,
    wrapped,
)

__all__ = [
    "Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip

Key = Array
"""An array of random keys, in annotations."""

GeneratorLike = str | Generator | DTypeLike
"""A generator of random bits: its name, or the dtype of its keys."""


def key(
    seed: ArrayLike, *, impl: GeneratorLike | None = None, dtype: GeneratorLike | None = None
) -> Array:
    """Return the key of a seed.

    Args:
        seed: integer scalar.
        impl: generator, such as "threefry2x32"; by default ``config.jax_default_prng_impl``.
        dtype: the generator too, as the dtype of its keys.

    Returns:
        Key, of shape () and dtype ``key<fry>``.

    Raises:
        BadArgument: an unknown generator, or a seed of more than 64 bits.
        IllTyped: the seed is not an integer scalar.

    >>> random.key(7)
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    of = _chosen(impl, dtype, "key")
    return wrapped(of.seed(_seed(seed)), of)


def PRNGKey(seed: ArrayLike, *, impl: GeneratorLike | None = None) -> Array:  # noqa: N802  JAX's name
    """Return the words of the key of a seed, which random functions take as a key too.

    They belong to the default generator: pass those of another one as ``wrap_key_data(words,
    impl=...)``.

    Args:
        seed: integer scalar.
        impl: generator, as in :func:`key`.

    Returns:
        Words, u32[2] for the default generator.

    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    return _chosen(impl, None, "PRNGKey").seed(_seed(seed))


def _chosen(impl: GeneratorLike | None, dtype: GeneratorLike | None, what: str) -> Generator:
    if impl is not None and dtype is not None:
        raise BadArgument(
            f"{what} takes `impl` or `dtype`, which mean the same",
            expected="one of them",
            found=f"impl={impl!r}, dtype={dtype!r}",
        )
    return generator(dtype if impl is None else impl)


def _seed(seed: ArrayLike) -> Array:
    """Return the integer, whose lower half alone counts while 64-bit dtypes are disabled."""
    if isinstance(seed, np.ndarray | np.generic) and not seed.shape and seed.dtype.kind in "iu":
        seed = int(np.asarray(seed).astype(np.int64))
    if is_python_scalar(seed):
        number = static_int(seed, "the seed") + int(str(config.read("random_seed_offset")))
        if not -(1 << 63) <= number < 1 << 63:
            raise NotFitting("the seed exceeds 64 bits", "-2**63 to 2**63 - 1", str(number))
        if config.enable_x64:
            return from_numpy(np.asarray(number, np.int64))
        return from_numpy(np.asarray(number & 0xFFFFFFFF, np.uint32))
    value = as_value(seed, "the seed")
    if value.shape or family(value.dtype) not in ("int", "uint"):
        raise IllTyped(
            "the seed is not an integer scalar",
            "an integer scalar",
            str(value.type),
            remedy="use `vmap` for many seeds" if value.shape else None,
        )
    return value


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys.

    Args:
        keys: array of keys, or words.

    Returns:
        Words, u32[..., 2] for keys of the default generator.

    Raises:
        IllTyped: ``keys`` is neither.

    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return words_and_generator(_keys(keys, "key_data"))[0]


def _keys(keys: ArrayLike, what: str) -> Array:
    """Return an array of keys, or words of keys of the default generator. Raises IllTyped."""
    value = as_value(keys, f"the keys of {what}")
    return value if is_key(value) else words_of_default(value)


def words_of_default(words: Array) -> Array:
    """Return words of keys of the default generator. Raises IllTyped for anything else."""
    wrapped(words, default_generator())
    return words


def key_dtype(impl: GeneratorLike | None = None) -> DType:
    """Return the dtype of the keys of a generator.

    Args:
        impl: generator, as in :func:`key`.

    Returns:
        Dtype of keys.

    Raises:
        BadArgument: an unknown generator.

    >>> random.key_dtype("threefry2x32")
    key<fry>
    """
    return cast(DType, generator(impl).dtype)


def key_impl(keys: ArrayLike) -> str | Generator:
    """Return the name of the generator of keys.

    Args:
        keys: array of keys, or words.

    Returns:
        The name; the generator itself for a user-defined one.

    >>> random.key_impl(random.key(7))
    'threefry2x32'
    """
    found = words_and_generator(_keys(keys, "key_impl"))[1]
    return found.name if found.name in NAMES else found


def wrap_key_data(
    key_bits_array: ArrayLike,
    *,
    impl: GeneratorLike | None = None,
    dtype: GeneratorLike | None = None,
) -> Array:
    """Return words as keys.

    Args:
        key_bits_array: words, u32[..., 2] for the default generator.
        impl: generator, as in :func:`key`.
        dtype: the generator too, as the dtype of its keys.

    Returns:
        Array of keys, without the last axis.

    Raises:
        IllTyped: the array is not words of the generator's keys.
        BadArgument: an unknown generator.

    >>> random.wrap_key_data(jnp.array([0, 7], jnp.uint32)) == random.key(7)
    Array(True, dtype=bool)
    """
    of = _chosen(impl, dtype, "wrap_key_data")
    return wrapped(as_value(key_bits_array, "the words of keys"), of)


def clone(key: ArrayLike) -> Array:
    """Return the same key, for code that marks where a key is used again on purpose.

    >>> random.clone(random.PRNGKey(7))
    Array([0, 7], dtype=uint32)
    """
    return _keys(key, "clone")


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Return new keys derived from a key.

    Args:
        key: random key, or its words.
        num: number of keys, or the shape of an array of keys.

    Returns:
        Keys, of shape ``num``; or their words, u32[num, 2].

    Raises:
        IllTyped: ``key`` is not one key.

    >>> random.split(random.key(7)).shape
    (2,)
    """
    return split_keys(checked(key, "split"), plain_shape(num, "split"))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key derived from a key and an integer.

    Args:
        key: random key, or its words.
        data: integer scalar of 32 bits.

    Returns:
        Key, or its words.

    Raises:
        IllTyped: ``key`` is not one key, or ``data`` is not an integer scalar.
        BadArgument: ``data`` exceeds 32 bits.

    >>> random.fold_in(random.key(7), 1).shape
    ()
    """
    parent = checked(key, "fold_in")
    if is_python_scalar(data):
        number = static_int(data, "the data of fold_in")
        if not 0 <= number < 1 << 32:
            raise BadArgument("the data of fold_in exceeds 32 bits", "0 to 2**32 - 1", str(number))
        return fold_keys(parent, from_numpy(np.asarray(number, np.uint32)))
    value = as_value(data, "the data of fold_in")
    if value.shape or family(value.dtype) not in ("int", "uint"):
        raise IllTyped(
            "fold_in takes an integer scalar",
            expected="an integer scalar",
            found=str(value.type),
            remedy="use `vmap` for many",
        )
    return fold_keys(parent, uf.astype(value, np.uint32))


def several(key: Array, n: int) -> list[Array]:
    """Return new keys."""
    keys = split_keys(key, (n,))
    return [slice_along(keys, 0, i, i + 1, drop=True) for i in range(n)]


def two(key: Array) -> tuple[Array, Array]:
    """Return two new keys."""
    first, second = several(key, 2)
    return first, second
