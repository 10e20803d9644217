"""The cache of a jitted function: from the signature of a call to its compiled program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from threading import RLock
from types import FunctionType
from typing import Final, NamedTuple, TypeGuard, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet, ref

from effax.api.call_keys import TRACED, ShortKey, flat_key, types_key
from effax.api.dispatch import Runner
from effax.api.host_arguments import call_in_order
from effax.api.static import StaticArgs, StaticValues
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed_array import PlacedArray, PlacedType
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef
from effax.arrays.tracing import FlatFunction
from effax.ir.analysis.variance import Names
from effax.ir.axes import Axes
from effax.ir.errors import BadArgument
from effax.ir.state import Cache, register_cache
from effax.ir.types import Type
from effax.lowering.xla import backend
from effax.tree import PyTreeDef

BOUND: Final = 512
"""The number of signatures for which one function has entries; the oldest is dropped first."""

FEW: Final = 16
"""The number of entries of one function that do not count for ``BOUND_OF_ALL``."""

BOUND_OF_ALL: Final = 1024
"""The number of entries of all functions with more than ``FEW``: some 300 megabytes.

Beyond it, the function with the most entries loses its oldest one.
"""

KINDS: Final = 8
"""The most calls of an entry that are tried in an index: numbers and arrays share an entry."""

WITH_TYPE: Final = (DeviceArray, EagerRef)
"""The classes of which every instance has its type as the attribute ``_type``."""

WITH_KEY: Final = (*WITH_TYPE, PlacedArray, PlacedRef)
"""The classes of which every instance has the key of its type and placement as ``_type``."""

K = TypeVar("K")
V = TypeVar("V")


class CallSignature(NamedTuple):
    """The parameters of a call's program, apart from the function itself.

    Values that the function closes over are not part of it: the entry keeps those of the trace.

    Attributes:
        structure: the structure of ``(args, kwargs)``, without static arguments.
        types: the types of the leaves: shapes, dtypes, weak types, kinds of references.
        static: the values of the static arguments; None where there are none.
        settings: the settings of the call (``config.call_key``).
        axes: the named axes in scope.
        varying: the axes along which each leaf may vary; empty where no axis is in scope.
        placed: the type and sharding of each leaf that is placed, else None; empty where none is.
    """

    structure: PyTreeDef
    types: tuple[Type, ...]
    static: StaticValues | None
    settings: object
    axes: Axes
    varying: tuple[Names, ...]
    placed: tuple[PlacedType | None, ...] = ()


class CacheEntry:
    """A traced call, and the functions that run it once it is compiled.

    Attributes:
        flat: the traced program.
        runner: the function that runs it on its leaves.
        reads: whether that only reads the memory of its arguments.
        indexed: the functions that run its calls, by the kinds of their arguments.
        lock: of several threads that call first, one compiles.
    """

    __slots__ = ("flat", "indexed", "lock", "reads", "runner")

    def __init__(self, flat: FlatFunction) -> None:
        self.flat: FlatFunction = flat
        self.runner: Runner | None = None
        self.reads: bool = False
        self.indexed: list[Runner] = []
        self.lock: Final = RLock()


class _Live:
    """The caches of all functions, and the lock under which any of them changes.

    Lookups need no lock: they are single operations of dictionaries.
    """

    def __init__(self) -> None:
        # Reentrant: a static argument may be collected while an entry is added.
        self.lock: Final = RLock()
        self.caches: Final[WeakSet[CallCache]] = WeakSet()

    def clear(self) -> None:
        with self.lock:
            for cache in tuple(self.caches):
                cache.clear()

    def size(self) -> int:
        with self.lock:
            return sum(len(cache.entries) for cache in self.caches)

    def drop_one_too_many(self) -> None:
        """Drop an entry where all functions have more than ``BOUND_OF_ALL``."""
        large = [cache for cache in self.caches if len(cache.entries) > FEW]
        if sum(len(cache.entries) for cache in large) > BOUND_OF_ALL:
            max(large, key=lambda cache: len(cache.entries)).drop_oldest()


_live: Final = _Live()
register_cache(Cache("effax.api.call_cache._live", BOUND_OF_ALL, _live.clear, _live.size))


class CallCache:
    """The entries of one jitted function, which owns the cache.

    Each table is bounded by ``BOUND``. What leaves ``entries`` leaves the indices too, and with it
    the executable is freed, unless another function has the same program.

    Three indices find the runner of an entry from a key that is quicker to make than a signature:

    - ``by_types``, where all arguments are arrays or references with memory;
    - ``by_kind``, where they are any kind of leaf, or static;
    - ``by_structure``, where they are trees of leaves, by the structure that XLA's own flattening
      returns, which flattens in C++ what ``tree.flatten`` does in two steps.

    An entry is removed when a static argument is collected that is compared by identity.
    """

    def __init__(self, static: StaticArgs) -> None:
        self.static = static
        self.entries: dict[CallSignature, CacheEntry] = {}
        self.by_types: dict[ShortKey, Runner] = {}
        self.by_kind: dict[ShortKey, Runner] = {}
        self.by_structure: dict[ShortKey, Runner] = {}
        with _live.lock:
            _live.caches.add(self)
        # Weakly: the keys have the callback, so that a strong reference would be a cycle.
        this = ref(self)

        def on_collected(_: object) -> None:
            cache = this()
            if cache is not None:
                cache.remove_stale()

        self.on_collected: Callable[[object], None] = on_collected

    def entry(self, signature: CallSignature) -> CacheEntry | None:
        """Return the entry of a signature. Raises BadArgument if a comparison raises."""
        try:
            return self.entries.get(signature)
        except Exception as error:
            raise BadArgument(
                "static arguments, and static data of trees, must be comparable by ==",
                expected="values whose == returns a boolean",
                found=f"{type(error).__name__}: {error}",
                remedy="pass arrays as arguments that are not static, or as leaves",
            ) from error

    def add(self, signature: CallSignature, entry: CacheEntry) -> None:
        """Keep an entry."""
        with _live.lock:
            self.entries[signature] = entry
            if len(self.entries) > BOUND:
                self.drop_oldest()
            _live.drop_one_too_many()

    def drop_oldest(self) -> None:
        """Remove the entry that was added first."""
        self._remove([next(iter(self.entries))])

    def _remove(self, signatures: Sequence[CallSignature]) -> None:
        """Remove entries, and what finds them."""
        with _live.lock:
            removed = [self.entries.pop(signature, None) for signature in signatures]
            gone = [run for entry in removed if entry is not None for run in entry.indexed]
            if gone:
                for table in (self.by_types, self.by_structure, self.by_kind):
                    for key in [k for k, runner in table.items() if runner in gone]:
                        del table[key]

    def index(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        leaves: Sequence[object],
        types: Sequence[Type],
        entry: CacheEntry,
    ) -> None:
        """Add a call of a compiled entry to the index that covers it, if one does."""
        run = entry.runner
        assert run is not None
        has_static = any(self.static)
        in_order = call_in_order(run, entry.reads, self.static, args, kwargs, leaves, types)
        entry.indexed.append(in_order or run)
        values = [*args, *kwargs.values()]
        try:
            if in_order is not None and not has_static and _all_with_type(values):
                _insert(self.by_types, types_key(args, kwargs), in_order)
            elif in_order is not None:
                key = flat_key(self.static, args, kwargs)
                if key:
                    _insert(self.by_kind, key, in_order)
            elif not has_static:
                found, key = _structured(args, kwargs)
                # User-defined nodes may be leaves for XLA, or have their leaves in another order.
                if len(found) == len(leaves) and all(map(is_, found, leaves)):
                    _insert(self.by_structure, key, run)
        except NO_KEY:
            return

    def find_tree(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Runner, Sequence[object]] | None:
        """Return the runner of a call on trees, and its leaves; None where the index has it not."""
        try:
            leaves, key = _structured(args, kwargs)
        except NO_KEY:
            return None
        run = self.by_structure.get(key)
        return None if run is None else (run, leaves)

    def remove_stale(self) -> None:
        """Remove the entries of which a static argument has been collected."""
        with _live.lock:
            entries = list(self.entries)
            self._remove([s for s in entries if s.static is not None and s.static.is_stale()])

    def clear(self) -> None:
        """Remove all entries."""
        with _live.lock:
            self.entries.clear()
            self.by_types.clear()
            self.by_kind.clear()
            self.by_structure.clear()


_shared: Final[WeakKeyDictionary[object, dict[StaticArgs, CallCache]]] = WeakKeyDictionary()
"""The caches of functions by their static arguments: ``jit(f)`` twice traces once."""


def cache_of(fun: object, static: StaticArgs) -> CallCache:
    """Return the cache of a function, which all jitted functions of it without options share."""
    if type(fun) is not FunctionType:
        return CallCache(static)
    with _live.lock:
        own = _shared.setdefault(fun, {})
        if len(_shared) > BOUND:
            del _shared[next(iter(_shared))]
        return own.setdefault(static, CallCache(static))


register_cache(Cache("effax.api.call_cache._shared", BOUND, _shared.clear, lambda: len(_shared)))

NO_KEY: Final = (KeyError, TypeError, ValueError, RecursionError, SystemError)
"""The errors of :func:`_structured` for a call without a key."""


def _insert(table: dict[K, V], key: K, value: V) -> None:
    with _live.lock:
        table[key] = value
        if len(table) > BOUND:
            del table[next(iter(table))]


def _structured(
    args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[list[object], ShortKey]:
    """Return the leaves of a call, and the key of its structure and types.

    Raises KeyError where a leaf has no short key; TypeError or ValueError where keys of a dict have
    no hash or no order; RecursionError or SystemError for a tree of thousands of levels.
    """
    leaves, structure = backend().flatten((args, kwargs) if kwargs else args)
    arrays = cast("list[DeviceArray | EagerRef]", leaves)
    try:
        return leaves, (structure, config.call_key, *[x._type for x in arrays])
    except AttributeError:
        return leaves, (structure, config.call_key, *[TRACED[type(x)](x) for x in leaves])


def _all_with_type(args: Sequence[object]) -> TypeGuard[Sequence[DeviceArray | EagerRef]]:
    return all([type(x) in WITH_KEY for x in args])  # noqa: C419  # a list is faster
