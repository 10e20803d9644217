"""Short keys of calls: what decides which compiled program runs, quick to make.

A key has an entry for each argument: the type of an array or reference, shape and dtype of a NumPy
array, the class of a Python number, the value of a static argument; then the names of keyword
arguments in the order of the call. A call with another kind of argument has no such key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_
from types import NoneType
from typing import Any, Final, NamedTuple

import numpy as np

from effax.api.ref_calls import buffer_of
from effax.api.static import StaticArgs
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed_array import PlacedArray
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef
from effax.ir.types import ArrayType, Type

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


class CallLeaves(NamedTuple):
    """The arguments that are the leaves of a call, in their order.

    Attributes:
        positions: those of positional arguments; None for all.
        names: those of keyword arguments, sorted.
        hosts: the places among the leaves of NumPy arrays and numbers, and their types as inputs.
    """

    positions: tuple[int, ...] | None
    names: tuple[str, ...]
    hosts: tuple[tuple[int, ArrayType], ...]

    def of(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Sequence[object]:
        """Return the leaves of a call, with arrays in the place of host values."""
        positions, names, hosts = self
        leaves = [*args] if positions is None else [args[i] for i in positions]
        if names:
            leaves += [kwargs[name] for name in names]
        for i, type_ in hosts:
            leaves[i] = DeviceArray(None, type_, buffer_of(leaves[i]))
        return leaves


def flat_key(static: StaticArgs, args: Sequence[object], kwargs: Mapping[str, object]) -> ShortKey:
    """Return the key of a call. Raises KeyError where it has none."""
    if not static.nums and not static.names:
        entries = [TRACED[type(x)](x) for x in args]
        if not kwargs:
            return (config.call_key, *entries)
        return (
            config.call_key, *entries, *kwargs, *[TRACED[type(x)](x) for x in kwargs.values()],
        )  # fmt: skip
    nums, names = static
    return (
        config.call_key,
        *[(STATIC if i in nums else TRACED)[type(x)](x) for i, x in enumerate(args)],
        *kwargs,
        *[(STATIC if name in names else TRACED)[type(x)](x) for name, x in kwargs.items()],
    )


def flat_leaves(
    static: StaticArgs,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    leaves: Sequence[object],
    types: Sequence[Type],
) -> CallLeaves | None:
    """Return where the leaves of a call, of these types, are; None if its arguments are trees."""
    positions = tuple([i for i in range(len(args)) if i not in static.nums])
    names = tuple(sorted([name for name in kwargs if name not in static.names]))
    picked = [*[args[i] for i in positions], *[kwargs[name] for name in names]]
    if len(picked) != len(leaves) or not all(map(is_, picked, leaves)):
        return None
    hosts = [
        (i, t)
        for i, (x, t) in enumerate(zip(leaves, types, strict=True))
        if isinstance(t, ArrayType) and not isinstance(x, DeviceArray)
    ]
    every = len(positions) == len(args)
    return CallLeaves(None if every else positions, names, tuple(hosts))
