"""Memory of pure functions of programs, bounded by the size of what is remembered.

``functools.lru_cache`` bounds the number of results. Results that hold programs can be large, and
a caller whose programs differ each time, by a constant say, would fill the memory with them. Here a
function forgets everything when the programs that it holds have too many equations together. A hit
costs what it costs with ``lru_cache``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from effax.ir.primitive import Primitive
from effax.ir.syntax import Jaxpr

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

P = ParamSpec("P")
R = TypeVar("R")

EQUATIONS = 1 << 16
"""How many equations one function holds, some tens of megabytes."""


def weight(value: object) -> int:
    """How many equations the programs in a value have, those that they hold themselves aside."""
    if isinstance(value, Jaxpr):
        return len(value.eqns)
    if isinstance(value, Primitive):
        return sum(len(jaxpr.eqns) for jaxpr in value.subjaxprs())
    if isinstance(value, tuple):
        return sum(map(weight, value))
    return 0


def remembered(
    maxsize: int, limit: int = EQUATIONS
) -> Callable[[Callable[P, R]], _lru_cache_wrapper[R]]:
    """Decorator: remember the results of a pure function of hashable arguments.

    Args:
        maxsize: how many results to keep; the least recently used go first.
        limit: how many equations to keep; all results go when there are more.
    """

    def decorate(function: Callable[P, R]) -> _lru_cache_wrapper[R]:
        held = 0

        @wraps(function)
        def missed(*args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal held
            result = function(*args, **kwargs)
            new = weight(args) + weight(result)
            held += new
            if held > limit:
                kept.cache_clear()
                held = new
            return result

        kept = cast("_lru_cache_wrapper[R]", lru_cache(maxsize)(missed))
        return kept

    return decorate
