"""Rules that are being traced: calls of their function inside of them are knots."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from effax import tree
from effax.api.custom.site import Site
from effax.arrays.binding import Operand
from effax.arrays.device_array import TracedArray
from effax.arrays.ref import Ref
from effax.arrays.tracing import FlatFunction, shared_consts
from effax.ir.errors import ConcretizationError
from effax.ir.recursion import carried
from effax.ir.syntax import Jaxpr
from effax.ir.trace import values_asked


class Frame:
    """Rules that are being traced: a call of their function inside of them is a knot.

    ``flat`` is the function as it was traced, where that serves for each call of it, and ``consts``
    what it and its rules close over, once that is known. ``primals`` are the arguments that the
    rule has which is being traced, and ``elsewhere`` whether a knot takes others.
    """

    def __init__(self, fun: object, site: Site, flat: FlatFunction | None) -> None:
        self.fun = fun
        self.site = site
        self.flat = flat
        self.met = False
        self.elsewhere = False
        self.primals: Sequence[object] = ()
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
    before = values_asked()
    with knots() as seen:
        flat = trace()
    # Knots in it count rules from where they are; references are checked for aliases at each call;
    # and what looked at values is the function for these values.
    refs = any(isinstance(x, Ref) for x in (*leaves, *flat.consts))
    return flat, not (seen.escape or refs or values_asked() != before)


def primals_are(fun: object, site: Site, primals: Sequence[object]) -> None:
    """Tell the rules that are being traced what the arguments of the call are inside of them."""
    frame = _frames.stack[-1] if _frames.stack else None
    if frame is not None and frame.fun is fun and frame.site is site:
        frame.primals = primals


def _are_same(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether two lists hold the same handles, or handles of the same variables."""
    return len(first) == len(second) and all(
        x is y
        or (
            isinstance(x, TracedArray)
            and isinstance(y, TracedArray)
            and x.trace is y.trace
            and x.atom == y.atom
        )
        for x, y in zip(first, second, strict=True)
    )


def knot(
    fun: object, site: Site, flat: FlatFunction, leaves: Sequence[Operand]
) -> tuple[list[Operand], Jaxpr, int] | None:
    """Of a call inside of its own rules: constants, program, how many rules out they are."""
    stack = _frames.stack
    for i in reversed(range(len(stack))):
        frame = stack[i]
        if frame.is_for(fun, site):
            frame.met = True
            frame.elsewhere |= not _are_same(frame.primals, leaves)
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
    before = values_asked()
    _frames.stack.append(frame)
    try:
        consts, jaxprs = shared_consts([flat, *trace_rules()])
        while frame.met and len(frame.consts) != len(consts):
            frame.consts = consts
            consts, jaxprs = shared_consts([flat, *trace_rules()], consts)
    finally:
        _frames.stack.pop()
    if frame.elsewhere and values_asked() != before:
        raise ConcretizationError(
            f"a rule of {site.label} looks at values, and calls {site.label} on others",
            expected=f"a call of {site.label} on the arguments of the rule",
            found="other arguments, for which the rule might decide otherwise",
            remedy="decide with `lax.cond` or `numpy.where` in the rule",
        )
    return consts, jaxprs
