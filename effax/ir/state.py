"""The state of the process: its caches, and all other mutable module state.

Each cache is made by :func:`cached` or :func:`effax.ir.memo.memoize`, or registered with
:func:`register_cache`: it has an owner (its name), a bound and a way to clear it. ``OTHER_STATE``
lists what is not a cache. A test compares both with the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

P = ParamSpec("P")
R = TypeVar("R")

Cached: TypeAlias = "_lru_cache_wrapper[R]"
"""A function whose results are cached."""


class Cache(NamedTuple):
    """A cache of the process.

    Attributes:
        name: its owner: a module, and a function or a variable in it.
        bound: the most results that it keeps; None if the number of arguments bounds it.
        clear: removes all results.
        size: returns the number of cached results.
    """

    name: str
    bound: int | None
    clear: Callable[[], None]
    size: Callable[[], int]


_caches: Final[list[Cache]] = []


def register_cache(cache: Cache) -> None:
    """Add a cache to those that :func:`caches` lists and :func:`clear_caches` clears."""
    _caches.append(cache)


def caches() -> tuple[Cache, ...]:
    """Return the caches of all modules that are imported, in order of registration."""
    return tuple(_caches)


def clear_caches() -> None:
    """Remove all cached results: typings, transformed programs, traces, executables.

    No result of a call changes; the next calls trace, transform and compile again.
    """
    for cache in _caches:
        cache.clear()


def register_lru(kept: Cached[R], owner: Callable[..., R], bound: int | None) -> None:
    """Register a cache of :mod:`functools` under the name of the function that it belongs to."""
    name = f"{owner.__module__}.{owner.__qualname__}"
    register_cache(Cache(name, bound, kept.cache_clear, lambda: kept.cache_info().currsize))


def cached(maxsize: int | None) -> Callable[[Callable[P, R]], Cached[R]]:
    """Cache the results of a pure function of hashable arguments, at module level.

    Args:
        maxsize: how many results to keep, the most recently used ones; None if there are few
            distinct arguments, such as dtypes.
    """

    def decorate(function: Callable[P, R]) -> Cached[R]:
        kept = lru_cache(maxsize)(function)
        register_lru(kept, function, maxsize)
        return kept

    return decorate


OTHER_STATE: Final[Mapping[str, str]] = {
    "effax.api.checkpoints.processes._numbers": "the numbers of the exchanges of a process",
    "effax.api.operations._operations": "one operation for each class of primitives",
    "effax.arrays.collector._pauses": "the number of pauses of the collector",
    "effax.arrays.rules.call_rules._state": "the calls whose rules a thread is tracing",
    "effax.arrays.rules.values._state": "whether calls keep the values of their arguments",
    "effax.arrays.mesh.MESHES": "the meshes in use in a context, innermost last",
    "effax.arrays.devices_in_use.in_use": "whether several devices are in use",
    "effax.lowering.xla.placement._handlers": "jaxlib's handlers, by type and placement",
    "effax.lowering.xla.placement._placements": "one placement for each division over devices",
    "effax.ir.key_dtype._dtypes": "one dtype of keys for each name of a generator",
    "effax.random.generators._generators": "the generators of random bits, by dtype of keys",
    "effax.api.export_trees._nodes": "the node types that users register for export",
    "effax.arrays.config.config": "the settings of the user",
    "effax.arrays.exclusive.sharing": "the lock of operations on references",
    "effax.drop_in.lowering._RULES": "the lowering rules that programs register",
    "effax.drop_in.modules._modules": "the modules that programs import as JAX's",
    "effax.drop_in.private._backends": "an empty map of JAX",
    "effax.drop_in.private._exclude_paths": "the files that programs exclude from tracebacks",
    "effax.drop_in.private._registry": "an empty map of JAX",
    "effax.extend.rules._WATCHERS": "the watcher of rules in a context",
    "effax.ir.eval.bounds.METER": "the bounds of evaluations in a context",
    "effax.ir.memo._load": "the number of equations that caches keep",
    "effax.ir.memo._memoized": "the caches of functions of programs",
    "effax.ir.operation.READING": "the functions behind `eqn.primitive`, set with the operations",
    "effax.ir.eval.quiet._quiet": "the context of a thread in which NumPy does not warn",
    "effax.ir.recursion._carried": "the states that move with a computation to another stack",
    "effax.ir.recursion._kinds": "which classes of primitives have subjaxprs",
    "effax.ir.recursion._stacks": "the number of stacks that a thread uses",
    "effax.ir.source._library": "the directory of the package",
    "effax.ir.state._caches": "the caches",
    "effax.ir.symbolic.ARRAYS": "the conversion of symbolic sizes to arrays",
    "effax.ir.text.display.DISPLAY": "the functions that print programs, set by the printer",
    "effax.ir.text.names.VAR_NAMES": "the printed names of variables, by number",
    "effax.lazy.dataclasses._lock": "the lock under which methods of a dataclass are generated",
    "effax.lazy.packages._known": "the index of names, by package",
    "effax.ir.trace._state": "the traces of a thread, innermost last",
    "effax.ir.types._arrays": "one value for equal array types, which identity compares first",
    "effax.ir.types._refs": "one value for equal reference types",
    "effax.lowering.xla.backend._process": "the client of XLA",
    "effax.lowering.xla.executable._freed": "the number of executables that were freed",
    "effax.lowering.xla.processes._membership": "the group of processes that this one joined",
    "effax.launch.workers._lock": "the lock under which lines of output are written",
    "effax.lowering.xla.host.running": "the calls in progress",
    "effax.testing.laws.recording._logs": "the logs of laws in progress",
    "effax.transforms.framework.pass_._default": "the rules of calls that pass none",
}
"""State that is not a cache of results: its name, and its purpose."""
