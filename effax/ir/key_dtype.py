"""Dtypes of random keys: opaque elements, each of which is some 32-bit words.

Operations that move elements take arrays of keys as any others; arithmetic refuses them. On NumPy
an element is a record of its words, so that shapes are those of keys; in a lowered program the
words are the last axes of an array of ``uint32``.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, final

import numpy as np

from effax.ir.errors import BadArgument

if TYPE_CHECKING:
    from effax.ir.types import Shape


@final
class KeyDType:
    """The dtype of the keys of a generator, printed as ``key<fry>``.

    NumPy takes it wherever it takes a dtype, by its attribute ``dtype``.

    Attributes:
        impl: name of the generator.
        tag: short name of the generator, unique in the process.
        words: shape of the words of one key.
        dtype: NumPy's dtype of the records that represent keys.
        itemsize: number of bytes of a key.
        name: the printed name.
    """

    __slots__ = ("_hash", "dtype", "impl", "itemsize", "name", "tag", "words")

    kind: Final = "V"
    isnative: Final = True
    names: Final = None
    num: Final = -1

    def __init__(self, impl: str, tag: str, words: Shape) -> None:
        self.impl: str = impl
        self.tag: str = tag
        self.words: Shape = words
        self.dtype: np.dtype[np.void] = np.dtype([(tag, np.uint32, words)])
        self.itemsize: int = 4 * prod(words)
        self.name: str = f"key<{tag}>"
        self._hash = hash(self.dtype)

    @property
    def type(self) -> type[object]:
        """Return the category of the dtype, ``dtypes.prng_key``."""
        return prng_key

    def newbyteorder(self, new_order: str = "S", /) -> KeyDType:
        """Return the dtype itself: its words are in native order."""
        return self

    def __eq__(self, other: object) -> bool:
        # NumPy's dtype of the records is equal, with the same hash.
        return self is other or (isinstance(other, np.dtype) and other.names == (self.tag,))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return (key_dtype, (self.impl, self.tag, self.words))


class extended(np.generic):  # noqa: N801  # JAX's name
    """The category of dtypes that NumPy lacks: those of random keys."""


class prng_key(extended):  # noqa: N801  # JAX's name
    """The category of the dtypes of random keys."""


_dtypes: Final[dict[str, KeyDType]] = {}


def key_dtype(impl: str, tag: str, words: Shape) -> KeyDType:
    """Return the dtype of a generator's keys.

    Args:
        impl: name of the generator.
        tag: short name, ASCII letters, digits and underscores.
        words: shape of the words of one key.

    Raises:
        BadArgument: the tag is that of another generator, or is not a name.
    """
    if not tag.isidentifier() or not tag.isascii():
        raise BadArgument("the tag of a generator is not a name", "a name such as 'fry'", repr(tag))
    found = _dtypes.setdefault(tag, KeyDType(impl, tag, words))
    if (found.impl, found.words) != (impl, words):
        raise BadArgument(
            f"the tag '{tag}' is that of another generator",
            expected="a tag that no other generator has",
            found=f"{found.impl}, with keys of words {found.words}",
        )
    return found


def key_dtype_of_tag(tag: str) -> KeyDType:
    """Return the dtype printed as ``key<tag>``. Raises KeyError."""
    return _dtypes[tag]


def key_dtype_of_record(dtype: np.dtype[np.generic]) -> KeyDType | None:
    """Return the dtype of keys that NumPy's dtype represents, if any."""
    names = dtype.names
    found = _dtypes.get(names[0]) if names and len(names) == 1 else None
    return found if found is not None and found.dtype == dtype else None


THREEFRY: Final = key_dtype("threefry2x32", "fry", (2,))
"""Keys of Threefry-2x32, the default generator."""

RBG: Final = key_dtype("rbg", "rbg", (4,))
"""Keys of XLA's generator of random bits."""

UNSAFE_RBG: Final = key_dtype("unsafe_rbg", "urbg", (4,))
"""Keys of XLA's generator, from which new ones are derived by it too."""


def words_of(value: np.ndarray, dtype: KeyDType) -> np.ndarray:
    """Return a view of the words of keys: their axes, then those of the words."""
    return np.asarray(value[dtype.tag])


def records_of(words: np.ndarray, dtype: KeyDType) -> np.ndarray:
    """Return the keys that words are: a view where they are contiguous."""
    shape = words.shape[: words.ndim - len(dtype.words)]
    return np.ndarray(shape, dtype.dtype, np.ascontiguousarray(words, np.uint32))
