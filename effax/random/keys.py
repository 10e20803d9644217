"""Keys: made of seeds and of other keys."""

from __future__ import annotations

import numpy as np

from effax.arrays.config import config
from effax.arrays.device_array import Array, ArrayLike, as_value, from_numpy, is_python_scalar
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped
from effax.lax import elementwise as el
from effax.numpy import ufuncs as uf
from effax.numpy.axes import plain_shape, static_int
from effax.numpy.creation import zeros
from effax.numpy.join import stack
from effax.numpy.shapes import slice_along
from effax.random.threefry import fold_key, split_key


def key(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """The key of a seed.

    Args:
        seed: an integer.
        impl: the generator, "threefry2x32".

    Raises:
        BadArgument: there is no such generator, or the seed takes more than 64 bits.
        IllTyped: the seed is not an integer scalar.
    """
    if impl not in (None, "threefry2x32"):
        raise BadArgument("there is no such generator", "'threefry2x32'", repr(impl))
    if is_python_scalar(seed):
        number = static_int(seed, "the seed")
        if not -(1 << 63) <= number < 1 << 63:
            raise BadArgument("a seed takes 64 bits", "-2**63 to 2**63 - 1", str(number))
        # As JAX does, only the lower half counts while 64-bit dtypes are disabled.
        high = number >> 32 if config.enable_x64 else 0
        words = [high & 0xFFFFFFFF, number & 0xFFFFFFFF]
        return from_numpy(np.array(words, np.uint32))
    value = as_value(seed, "the seed")
    if value.shape or family(value.dtype) not in ("int", "uint"):
        raise IllTyped("a seed is an integer scalar", "an integer scalar", str(value.type))
    low = uf.astype(value, np.uint32)
    high_word: Array = zeros((), np.uint32)
    if value.dtype.itemsize == 8:
        high_word = uf.astype(el.shift_right_logical(value, 32), np.uint32)
    return stack([high_word, low])


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:  # noqa: N802  JAX's name
    """The key of a seed, as :func:`key`."""
    return key(seed, impl=impl)


def checked(key: ArrayLike, what: str) -> Array:
    """The key. Raises IllTyped where it is none, or many."""
    value = as_value(key, f"the key of {what}")
    if value.dtype != np.uint32 or value.shape != (2,):
        raise IllTyped(
            f"{what} takes one key",
            expected="u32[2], as `random.key` and `random.split` give",
            found=str(value.type),
            remedy="use `vmap` for many keys" if value.ndim > 1 else None,
        )
    return value


def key_data(keys: ArrayLike) -> Array:
    """The words of keys."""
    return as_value(keys, "the keys")


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Array:
    """Words as keys."""
    return as_value(key_bits_array, "the words of keys")


def clone(key: ArrayLike) -> Array:
    """The same key, once more."""
    return as_value(key, "the key")


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """So many new keys (or an array of keys of that shape), along the leading axes."""
    return split_key(checked(key, "split"), plain_shape(num, "split"))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer, which is taken as 32 bits."""
    parent = checked(key, "fold_in")
    if is_python_scalar(data):
        number = static_int(data, "the data of fold_in")
        if not 0 <= number < 1 << 32:
            raise BadArgument("fold_in takes 32 bits", "0 to 2**32 - 1", str(number))
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
    """Two new keys."""
    pair = split_key(key, (2,))
    first, second = (slice_along(pair, 0, i, i + 1, drop=True) for i in range(2))
    return first, second
