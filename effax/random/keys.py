"""Random keys, derived from seeds and from other keys."""

from __future__ import annotations

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_shape, static_int
from effax.arrays.config import config
from effax.arrays.conversion import as_value, from_numpy, is_python_scalar
from effax.arrays.creation import zeros
from effax.arrays.shapes import slice_along
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.join import stack
from effax.random.threefry import fold_key, split_key

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "split", "wrap_key_data"]


def key(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """Return the key of a seed.

    Args:
        seed: integer scalar.
        impl: generator, "threefry2x32".

    Returns:
        Key, u32[2].

    Raises:
        BadArgument: an unknown generator, or a seed of more than 64 bits.
        IllTyped: the seed is not an integer scalar.

    >>> random.key(7)
    Array([0, 7], dtype=uint32)
    """
    if impl not in (None, "threefry2x32"):
        raise BadArgument("unknown generator", "'threefry2x32'", repr(impl))
    if is_python_scalar(seed):
        number = static_int(seed, "the seed")
        if not -(1 << 63) <= number < 1 << 63:
            raise BadArgument("the seed exceeds 64 bits", "-2**63 to 2**63 - 1", str(number))
        # As in JAX, only the lower half counts while 64-bit dtypes are disabled.
        high = number >> 32 if config.enable_x64 else 0
        words = [high & 0xFFFFFFFF, number & 0xFFFFFFFF]
        return from_numpy(np.array(words, np.uint32))
    value = as_value(seed, "the seed")
    if value.shape or family(value.dtype) not in ("int", "uint"):
        raise IllTyped("the seed is not an integer scalar", "an integer scalar", str(value.type))
    low = uf.astype(value, np.uint32)
    high_word: Array = zeros((), np.uint32)
    if value.dtype.itemsize == 8:
        high_word = uf.astype(el.shift_right_logical(value, 32), np.uint32)
    return stack([high_word, low])


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:  # noqa: N802  JAX's name
    """Return the key of a seed; see :func:`key`.

    Args:
        seed: integer scalar.
        impl: generator, "threefry2x32".

    Returns:
        Key, u32[2].

    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    return key(seed, impl=impl)


def checked(key: ArrayLike, what: str) -> Array:
    """Return the key. Raises IllTyped for anything but one key."""
    value = as_value(key, f"the key of {what}")
    if value.dtype != np.uint32 or value.shape != (2,):
        raise IllTyped(
            f"{what} takes one key",
            expected="u32[2], as `random.key` and `random.split` return",
            found=str(value.type),
            remedy="use `vmap` for many keys" if value.ndim > 1 else None,
        )
    return value


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys.

    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return as_value(keys, "the keys")


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Array:
    """Return words as keys.

    Args:
        key_bits_array: words, u32[..., 2].
        impl: ignored; for compatibility with JAX.

    Returns:
        Keys.

    >>> random.wrap_key_data(jnp.array([0, 7], jnp.uint32))
    Array([0, 7], dtype=uint32)
    """
    return as_value(key_bits_array, "the words of keys")


def clone(key: ArrayLike) -> Array:
    """Return the same key.

    >>> random.clone(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return as_value(key, "the key")


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Return new keys derived from a key.

    Args:
        key: random key, u32[2].
        num: number of keys, or the shape of an array of keys.

    Returns:
        Keys, u32[num, 2].

    Raises:
        IllTyped: ``key`` is not one key.

    >>> random.split(random.key(7)).shape
    (2, 2)
    """
    return split_key(checked(key, "split"), plain_shape(num, "split"))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key derived from a key and an integer.

    Args:
        key: random key, u32[2].
        data: integer scalar of 32 bits.

    Returns:
        Key, u32[2].

    Raises:
        IllTyped: ``key`` is not one key, or ``data`` is not an integer scalar.
        BadArgument: ``data`` exceeds 32 bits.

    >>> random.fold_in(random.key(7), 1).shape
    (2,)
    """
    parent = checked(key, "fold_in")
    if is_python_scalar(data):
        number = static_int(data, "the data of fold_in")
        if not 0 <= number < 1 << 32:
            raise BadArgument("the data of fold_in exceeds 32 bits", "0 to 2**32 - 1", str(number))
        return fold_key(parent, from_numpy(np.asarray(number, np.uint32)))
    value = as_value(data, "the data of fold_in")
    if value.shape or family(value.dtype) not in ("int", "uint"):
        raise IllTyped(
            "fold_in takes an integer scalar",
            expected="an integer scalar",
            found=str(value.type),
            remedy="use `vmap` for many",
        )
    return fold_key(parent, uf.astype(value, np.uint32))


def two(key: Array) -> tuple[Array, Array]:
    """Return two new keys."""
    pair = split_key(key, (2,))
    first, second = (slice_along(pair, 0, i, i + 1, drop=True) for i in range(2))
    return first, second
