"""Caches of pure functions of programs, bounded by the equations that they keep.

``functools.lru_cache`` bounds the number of results. Programs can be large, and a caller whose
programs differ each time, by a constant say, would fill the memory with them. A miss counts the
equations of the programs in its arguments and its result; where many were counted, the next pass
begins with empty caches. A hit costs as much as with ``lru_cache``. A miss, which may be for a
deeply nested program, continues on a fresh stack where much of this one is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

from effax.ir.primitive import Primitive
from effax.ir.recursion import with_fresh_stack
from effax.ir.state import Cached, register_lru
from effax.ir.syntax import Jaxpr

P = ParamSpec("P")
R = TypeVar("R")

EQUATIONS: Final = 1 << 18
"""How many equations caches keep before they are cleared: less than 200 megabytes."""


class _Load:
    """The equations in the programs that were added to caches since these were cleared."""

    __slots__ = ("equations",)

    def __init__(self) -> None:
        self.equations: int = 0


_load: Final = _Load()
_memoized: Final[list[Callable[[], None]]] = []


def memoize(maxsize: int) -> Callable[[Callable[P, R]], Cached[R]]:
    """Cache the results of a pure function of hashable arguments, programs among them.

    Args:
        maxsize: how many results to keep; the least recently used go first.
    """

    def decorate(function: Callable[P, R]) -> Cached[R]:
        @wraps(function)
        def computed(*args: P.args, **kwargs: P.kwargs) -> R:
            result = function(*args, **kwargs)
            _load.equations += _equations_in(args) + _equations_in(result)
            return result

        kept = lru_cache(maxsize)(with_fresh_stack(computed))
        register_lru(kept, function, maxsize)
        _memoized.append(kept.cache_clear)
        return kept

    return decorate


def _equations_in(value: object) -> int:
    """Return the number of equations of the programs in an argument or a result."""
    if isinstance(value, Jaxpr):
        return len(value.eqns)
    if isinstance(value, Primitive):
        return sum([len(jaxpr.eqns) for jaxpr in value.subjaxprs()])
    if isinstance(value, tuple):
        return sum([_equations_in(part) for part in value])
    return 0


def clear_if_large() -> None:
    """Clear the caches of functions of programs where they keep many equations."""
    if _load.equations > EQUATIONS:
        _load.equations = 0
        for clear in _memoized:
            clear()
