"""Rules that are being traced: calls of their function inside of them are knots."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from effax import tree
from effax.api.custom.site import Site
from effax.bind import Operand
from effax.ir.depth import carried
from effax.ir.syntax import Jaxpr
from effax.ref import Ref
from effax.tracing import FlatFunction, shared_consts


class Frame:
    """Rules that are being traced: a call of their function inside of them is a knot.

    ``flat`` is the function as it was traced, where that serves for each call of it, and ``consts``
    what it and its rules close over, once that is known.
    """

    def __init__(self, fun: object, site: Site, flat: FlatFunction | None) -> None:
        self.fun = fun
        self.site = site
        self.flat = flat
        self.met = False
        self.consts: list[Operand] = []

    def is_for(self, fun: object, site: Site) -> bool:
        """Whether a call is one of the same function on the same types."""
        return self.fun is fun and self.site.takes_the_same(site)


class _Frames(threading.local):
    """The frames of this thread, innermost last, and the outermost that a knot belonged to."""

    def __init__(self) -> None:
        self.stack: list[Frame] = []
        self.outermost = sys.maxsize


_frames = carried(_Frames())


class _Knots:
    """Whether what was traced holds knots of rules around it."""

    escape = False


@contextmanager
def knots() -> Iterator[_Knots]:
    """Watch for calls, traced in the block, that belong to rules which began before it.

    What is traced then has a meaning in that place only, and must not be kept for another.
    """
    seen = _Knots()
    before, _frames.outermost = _frames.outermost, sys.maxsize
    here = len(_frames.stack)
    try:
        yield seen
    finally:
        seen.escape = _frames.outermost < here
        _frames.outermost = min(before, _frames.outermost)


@contextmanager
def without_frames() -> Iterator[None]:
    """Trace a rule that a transformation asks for: no rules are around it."""
    stack, _frames.stack = _frames.stack, []
    try:
        yield
    finally:
        _frames.stack = stack


def is_fixed(x: object) -> bool:
    """Whether ``x`` came from a call, as an argument without derivatives, to rules around here."""
    return any(x is leaf for frame in _frames.stack for leaf in tree.leaves(frame.site.fixed))


def traced_once(
    fun: object, site: Site, leaves: Sequence[Operand], trace: Callable[[], FlatFunction]
) -> tuple[FlatFunction, bool]:
    """The function, traced once for a call and those in its rules; whether it serves for these.

    So functions with rules may hold each other at many levels, and each is traced once.
    """
    frame = next((f for f in reversed(_frames.stack) if f.is_for(fun, site)), None)
    if frame is not None and frame.flat is not None:
        return frame.flat, False
    with knots() as seen:
        flat = trace()
    # Knots in it count rules from where they are; references are checked for aliases at each call.
    refs = any(isinstance(x, Ref) for x in (*leaves, *flat.consts))
    return flat, not (seen.escape or refs)


def knot(fun: object, site: Site, flat: FlatFunction) -> tuple[list[Operand], Jaxpr, int] | None:
    """Of a call inside of its own rules: constants, program, how many rules out they are."""
    stack = _frames.stack
    for i in reversed(range(len(stack))):
        frame = stack[i]
        if frame.is_for(fun, site):
            frame.met = True
            _frames.outermost = min(_frames.outermost, i)
            consts, (jaxpr,) = shared_consts([flat], frame.consts)
            return consts, jaxpr, len(stack) - 1 - i
    return None


def with_rules(
    fun: object,
    site: Site,
    flat: FlatFunction,
    serves: bool,
    trace_rules: Callable[[], Sequence[FlatFunction]],
) -> tuple[list[Operand], list[Jaxpr]]:
    """The programs of a function and of its rules, over one list of constants.

    A knot takes the constants of all of them, so rules with knots are traced again when
    those are known. ``serves`` says whether ``flat`` is the program of each call in the rules.
    """
    frame = Frame(fun, site, flat if serves else None)
    _frames.stack.append(frame)
    try:
        consts, jaxprs = shared_consts([flat, *trace_rules()])
        while frame.met and len(frame.consts) != len(consts):
            frame.consts = consts
            consts, jaxprs = shared_consts([flat, *trace_rules()], consts)
    finally:
        _frames.stack.pop()
    return consts, jaxprs
