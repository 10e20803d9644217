"""The cache of a jitted function: from the signature of a call to its compiled program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Final, NamedTuple, TypeGuard, TypeVar, cast
from weakref import WeakSet, ref

from effax.api.dispatch import Runner
from effax.api.static import StaticValues
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import EagerRef
from effax.arrays.tracing import FlatFunction
from effax.ir.analysis.variance import Names
from effax.ir.axes import Axes
from effax.ir.state import Cache, register_cache
from effax.ir.types import Type
from effax.lowering.xla import backend
from effax.tree import PyTreeDef

BOUND: Final = 4096
"""The number of signatures for which one function has entries; the oldest is dropped first."""

WITH_TYPE: Final = (DeviceArray, EagerRef)
"""The classes of which every instance has its type as the attribute ``_type``."""

K = TypeVar("K")
V = TypeVar("V")

ShortKey = tuple[object, ...]
"""A key of one of the two indices: a flat tuple, which is quicker to make than a signature."""


class CallSignature(NamedTuple):
    """The parameters of a call's program, apart from the function itself.

    Values that the function closes over are not part of it: the entry keeps those of the trace.

    Attributes:
        structure: the structure of ``(args, kwargs)``, without static arguments.
        types: the types of the leaves: shapes, dtypes, weak types, kinds of references.
        static: the values of the static arguments; None where there are none.
        x64: whether 64-bit types are enabled.
        axes: the named axes in scope.
        varying: the axes along which each leaf may vary; empty where no axis is in scope.
    """

    structure: PyTreeDef
    types: tuple[Type, ...]
    static: StaticValues | None
    x64: bool
    axes: Axes
    varying: tuple[Names, ...]


class CacheEntry:
    """A traced call, and the function that runs it once it is compiled."""

    __slots__ = ("flat", "runner")

    def __init__(self, flat: FlatFunction) -> None:
        self.flat: FlatFunction = flat
        self.runner: Runner | None = None


_live: Final[WeakSet[CallCache]] = WeakSet()


def _clear_all() -> None:
    for cache in tuple(_live):
        cache.clear()


register_cache(
    Cache(
        "effax.api.call_cache._live", None, _clear_all, lambda: sum(len(c.entries) for c in _live)
    )
)


class CallCache:
    """The entries of one jitted function, which owns the cache. Each table is bounded by ``BOUND``.

    Two indices find the runner of an entry from a key that is quicker to make than a signature:

    - ``by_types``, where all arguments are positional, and arrays or references with memory;
    - ``by_structure``, where they are trees of these, by the structure that XLA's own flattening
      returns, which flattens in C++ what ``tree.flatten`` does in two steps.

    An entry is removed when a static argument is collected that is compared by identity.
    """

    def __init__(self) -> None:
        self.entries: dict[CallSignature, CacheEntry] = {}
        self.by_types: dict[ShortKey, Runner] = {}
        self.by_structure: dict[ShortKey, Runner] = {}
        _live.add(self)
        # Weakly: the keys have the callback, so that a strong reference would be a cycle.
        this = ref(self)

        def on_collected(_: object) -> None:
            cache = this()
            if cache is not None:
                cache.remove_stale()

        self.on_collected: Callable[[object], None] = on_collected

    def add(self, signature: CallSignature, entry: CacheEntry) -> None:
        """Keep an entry."""
        _insert(self.entries, signature, entry)

    def index(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        leaves: Sequence[object],
        runner: Runner,
    ) -> None:
        """Add a call to the index that covers it, if one does."""
        if not _all_with_type(leaves):
            return
        if not kwargs and _all_with_type(args):
            _insert(self.by_types, (config.enable_x64, *[x._type for x in leaves]), runner)
            return
        try:
            found, key = _structured(args, kwargs)
        except (AttributeError, TypeError, ValueError):
            return
        # User-defined nodes may be leaves for XLA, or have their leaves in another order.
        if len(found) == len(leaves) and all(map(is_, found, leaves)):
            _insert(self.by_structure, key, runner)

    def find_by_structure(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Runner, Sequence[object]] | None:
        """Return the runner of a call on trees, and the leaves to run it on."""
        try:
            leaves, key = _structured(args, kwargs)
        except (AttributeError, TypeError, ValueError):
            return None
        runner = self.by_structure.get(key)
        return None if runner is None else (runner, leaves)

    def remove_stale(self) -> None:
        """Remove the entries of which a static argument has been collected."""
        for signature in list(self.entries):
            if signature.static is not None and signature.static.is_stale():
                self.entries.pop(signature, None)

    def clear(self) -> None:
        """Remove all entries."""
        self.entries.clear()
        self.by_types.clear()
        self.by_structure.clear()


def _insert(table: dict[K, V], key: K, value: V) -> None:
    table[key] = value
    if len(table) > BOUND:
        table.pop(next(iter(table)))


def _structured(
    args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[list[DeviceArray | EagerRef], ShortKey]:
    """Return the leaves of a call, and the key of its structure and types.

    Raises AttributeError where a leaf is neither an array nor a reference with memory; TypeError or
    ValueError where keys of a dict have no hash or no order.
    """
    found, structure = backend().flatten((args, kwargs) if kwargs else args)
    leaves = cast("list[DeviceArray | EagerRef]", found)
    return leaves, (structure, config.enable_x64, *[x._type for x in leaves])


def _all_with_type(args: Sequence[object]) -> TypeGuard[Sequence[DeviceArray | EagerRef]]:
    return all([type(x) in WITH_TYPE for x in args])  # noqa: C419  # a list is faster
