"""Caches of pure functions of programs, bounded by the equations that they keep.

``functools.lru_cache`` bounds the number of results. Programs can be large, and a caller whose
programs differ each time, by a constant say, would fill the memory with them. A miss counts the
equations of the programs in its arguments and its result; where many were counted, the next pass
begins with empty caches. A miss, which may be for a deeply nested program, continues on a fresh
stack where much of this one is used.

A cache of the process would keep the Python objects alive to which a program refers, such as the
rules of a user's function and all that they close over. The results for such a program are kept by
the owner of these objects, and are freed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar, cast
from weakref import WeakSet

from effax.ir.owners import owner_in
from effax.ir.primitive import Owner, Primitive
from effax.ir.recursion import with_fresh_stack
from effax.ir.state import Cache, Cached, register_cache, register_lru
from effax.ir.syntax import Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType

P = ParamSpec("P")
R = TypeVar("R")

RESULTS: Final = 512
"""How many results an owner keeps before they are cleared."""

EQUATIONS: Final = 1 << 18
"""How many equations caches keep before they are cleared: less than 200 megabytes."""


class _Load:
    """The equations in the programs that were added to caches since these were cleared."""

    __slots__ = ("equations",)

    def __init__(self) -> None:
        self.equations: int = 0


_load: Final = _Load()
_memoized: Final[list[Callable[[], None]]] = []


_NONE: Final = object()
_owners: Final = WeakSet[Owner]()


def _clear_owners() -> None:
    for owner in list(_owners):
        owner.results.clear()
    _owners.clear()


def _n_owned() -> int:
    return sum(len(owner.results) for owner in list(_owners))


register_cache(Cache("effax.ir.memo._owners", None, _clear_owners, _n_owned))
_memoized.append(_clear_owners)


class _Owned(Exception):  # a signal
    """Signals a miss whose result an owner keeps."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self.owner: Owner = owner


def memoize(maxsize: int) -> Callable[[Callable[P, R]], Cached[R]]:
    """Cache the results of a pure function of hashable arguments, programs among them.

    Args:
        maxsize: how many results to keep; the least recently used go first.
    """

    def decorate(function: Callable[P, R]) -> Cached[R]:
        compute = with_fresh_stack(function)

        @wraps(function)
        def computed(*args: P.args, **kwargs: P.kwargs) -> R:
            owner = owner_in((*args, *kwargs.values()))
            if owner is not None:
                raise _Owned(owner)
            result = compute(*args, **kwargs)
            _load.equations += _equations_in(args) + _equations_in(result)
            return result

        kept = lru_cache(maxsize)(computed)

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return kept(*args, **kwargs)  # type: ignore[arg-type]  # unhashable ones are errors
            except _Owned as signal:
                owner = signal.owner
            key = (computed, args, tuple(kwargs.items()))
            found = owner.results.get(key, _NONE)
            if found is _NONE:
                found = compute(*args, **kwargs)
                _load.equations += _equations_in(args) + _equations_in(found)
                if len(owner.results) >= RESULTS:
                    owner.results.clear()
                owner.results[key] = found
                _owners.add(owner)
            return cast(R, found)

        vars(called).update(cache_info=kept.cache_info, cache_clear=kept.cache_clear)
        register_lru(kept, function, maxsize)
        _memoized.append(kept.cache_clear)
        return cast("Cached[R]", called)

    return decorate


def _equations_in(value: object) -> int:
    """Return the number of equations of the programs in an argument or a result."""
    if isinstance(value, Jaxpr):
        return len(value.eqns)
    if isinstance(value, tuple):
        # Tests in order of cost: most parts are variables and numbers, in long tuples.
        return 0 if isinstance(value, Var | Lit) else sum([_equations_in(part) for part in value])
    if type(value) not in _PLAIN and isinstance(value, Primitive):
        return sum([len(jaxpr.eqns) for jaxpr in value.subjaxprs()])
    return 0


_PLAIN: Final = (bool, int, str, type(None), ArrayType, RefType)


def clear_if_large() -> None:
    """Clear the caches of functions of programs where they keep many equations."""
    if _load.equations > EQUATIONS:
        _load.equations = 0
        for clear in _memoized:
            clear()
