"""Values for rules that decide by Python: calls are differentiated again where a rule needs them.

A rule is traced when a transformation asks for it, on types. Where values are known (under ``grad``
outside of ``jit``) and the rule reads one, the differentiating function starts again, and calls of
functions with rules keep the values of their arguments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from effax.ir.recursion import carried

P = ParamSpec("P")
R = TypeVar("R")


class NeedsValues(Exception):  # a signal
    """Signals that a rule reads a value that its call did not keep."""


class _State(threading.local):
    kept: bool = False


_state = carried(_State())


def values_are_kept() -> bool:
    """Return whether calls of functions with rules keep the values of their arguments."""
    return _state.kept


@contextmanager
def keeping_values(kept: bool = True) -> Iterator[None]:
    """Set whether calls in the block keep values."""
    before, _state.kept = _state.kept, kept
    try:
        yield
    finally:
        _state.kept = before


def retried_on_values(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a differentiating function so that it starts again where a rule needs values."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _state.kept:
            try:
                return function(*args, **kwargs)
            except NeedsValues:
                pass
        with keeping_values():
            return function(*args, **kwargs)

    return called
