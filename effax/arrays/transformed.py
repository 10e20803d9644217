"""Transformed programs of calls outside of traces, kept by the program that a call traced.

A derivative of a function traces the function each time, because Python may do anything in it; what
it traced is a value. Where it is the program of an earlier call, from the same lines, what a
transformation made of that program is used again: it is a function of the program alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from threading import RLock
from typing import Final, TypeVar, cast

from effax.arrays.binding import Operand, annotate_errors
from effax.arrays.collector import paused_collector
from effax.ir.owners import owner_of
from effax.ir.recursion import postorder, subjaxprs_of
from effax.ir.state import Cache, register_cache
from effax.ir.syntax import Jaxpr
from effax.ir.trace import current_trace

T = TypeVar("T")

BOUND: Final = 512
"""The number of programs that are kept, each with its results."""

MOST_EQUATIONS: Final = 1000
"""The most equations of a program that is kept."""

_kept: Final[dict[Jaxpr, tuple[Jaxpr, dict[Hashable, object]]]] = {}
"""The last traced of equal programs, and its results by transformation."""

_lock: Final = RLock()

register_cache(Cache("effax.arrays.transformed._kept", BOUND, _kept.clear, lambda: len(_kept)))


def transformed(
    jaxpr: Jaxpr, how: Hashable, operands: list[Operand], transform: Callable[[], T]
) -> T:
    """Return the result of a transformation of a program, or an earlier one.

    Args:
        jaxpr: the program of a call.
        how: the transformation and its arguments, apart from the program.
        operands: the operands of the call, for the names in errors; empty where they are unknown.
        transform: the transformation, a pure function of the program.
    """
    if current_trace() is not None or len(jaxpr.eqns) > MOST_EQUATIONS:
        return _run(transform, operands)
    known = _kept.get(jaxpr)
    if known is None or not (known[0] is jaxpr or _same_place(known[0], jaxpr)):
        if owner_of(jaxpr) is not None:
            # It refers to rules of Python functions, which may compute something else next time.
            return _run(transform, operands)
        known = _keep(jaxpr)
    results = known[1]
    if how not in results:
        results[how] = _run(transform, operands)
    return cast(T, results[how])


def _run(transform: Callable[[], T], operands: list[Operand]) -> T:
    names = annotate_errors(operands) if operands else nullcontext()
    with paused_collector(), names:
        return transform()


def _keep(jaxpr: Jaxpr) -> tuple[Jaxpr, dict[Hashable, object]]:
    known: tuple[Jaxpr, dict[Hashable, object]] = (jaxpr, {})
    with _lock:
        _kept.pop(jaxpr, None)
        _kept[jaxpr] = known
        if len(_kept) > BOUND:
            del _kept[next(iter(_kept))]
    return known


def _same_place(first: Jaxpr, second: Jaxpr) -> bool:
    """Return whether equal programs have the same names, and equations of the same lines."""
    if first.names != second.names or first.out_names != second.out_names:
        return False
    if not subjaxprs_of(first):
        return _same_lines(first, second)
    return all(map(_same_lines, postorder(first), postorder(second)))


def _same_lines(first: Jaxpr, second: Jaxpr) -> bool:
    return all(a.source == b.source for a, b in zip(first.eqns, second.eqns, strict=True))
