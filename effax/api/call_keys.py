"""Short keys of calls: what decides which compiled program runs, quick to make.

A key has an entry for each argument: the type of an array or reference, shape and dtype of a NumPy
array, the class of a Python number, the value of a static argument; then the names of keyword
arguments in the order of the call. A call with another kind of argument has no such key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any, Final

import numpy as np

from effax.api.static import StaticArgs
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed_array import PlacedArray
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef

ShortKey = tuple[object, ...]
"""A flat tuple, which is quicker to make than a signature."""

_Entries = Mapping[type, Callable[[Any], object]]


def _class(x: object) -> object:
    return type(x)


def _of_numpy(x: np.ndarray | np.generic) -> object:
    return x.shape, x.dtype


def _exact(x: object) -> object:
    return type(x), x


_NUMPY: Final = (
    np.ndarray, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip

TRACED: Final[_Entries] = {
    **dict.fromkeys((DeviceArray, EagerRef, PlacedArray, PlacedRef), attrgetter("_type")),
    **dict.fromkeys(_NUMPY, _of_numpy),
    **dict.fromkeys((bool, int, float, complex), _class),
}
"""The entry of an argument that is traced, by its class."""

STATIC: Final[_Entries] = dict.fromkeys((bool, int, str, NoneType), _exact)
"""The entry of a static argument, of a class of which equal values are the same."""


def types_key(args: Sequence[object], kwargs: Mapping[str, object]) -> ShortKey:
    """Return the key of a call with arrays and references. Raises AttributeError for others."""
    types = attrgetter("_type")
    key: ShortKey = (config.call_key, *map(types, args))
    return (*key, *kwargs, *map(types, kwargs.values())) if kwargs else key


def flat_key(static: StaticArgs, args: Sequence[object], kwargs: Mapping[str, object]) -> ShortKey:
    """Return the key of a call; nothing where it has none."""
    nums, names = static
    try:
        if not nums and not names:
            key: ShortKey = (config.call_key, *[TRACED[type(x)](x) for x in args])
            if kwargs:
                key = (*key, *kwargs, *[TRACED[type(x)](x) for x in kwargs.values()])
            return key
        entries = [
            # The first case is quicker than the second one. A static array is refused.
            x._type if type(x) is DeviceArray else (STATIC if i in nums else TRACED)[type(x)](x)
            for i, x in enumerate(args)
        ]
        if not kwargs:
            return (config.call_key, *entries)
        entries += [(STATIC if k in names else TRACED)[type(x)](x) for k, x in kwargs.items()]
        return (config.call_key, *kwargs, *entries)
    except KeyError:
        return ()
