"""Memory of pure functions of programs, bounded by how much is built.

``functools.lru_cache`` bounds the number of results. Results that hold programs can be large, and
a caller whose programs differ each time, by a constant say, would fill the memory with them. So
everything is forgotten whenever many equations were built since the last time. In between a hit
costs what it costs with ``lru_cache``; a miss, which may be for what is held very deeply, goes on
with a fresh stack where much of this one is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar

from effax.ir.recursion import with_fresh_stack

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

P = ParamSpec("P")
R = TypeVar("R")

Memoized: TypeAlias = "_lru_cache_wrapper[R]"
"""A function whose results are remembered."""

EQUATIONS: Final = 1 << 18
"""How many equations are built before what is remembered goes: less than 200 megabytes."""


class _Built:
    """How many equations were built since everything was forgotten."""

    __slots__ = ("equations",)

    def __init__(self) -> None:
        self.equations: int = 0


built: Final = _Built()
_memories: Final[list[_lru_cache_wrapper[object]]] = []


def memoize(maxsize: int) -> Callable[[Callable[P, R]], Memoized[R]]:
    """Decorator: remember the results of a pure function of hashable arguments.

    Args:
        maxsize: how many results to keep; the least recently used go first.
    """

    def decorate(function: Callable[P, R]) -> _lru_cache_wrapper[R]:
        kept = lru_cache(maxsize)(with_fresh_stack(function))
        _memories.append(kept)
        return kept

    return decorate


def clear_if_large() -> None:
    """Forget all results where many equations were built since this was last done."""
    if built.equations > EQUATIONS:
        built.equations = 0
        for memory in _memories:
            memory.cache_clear()
