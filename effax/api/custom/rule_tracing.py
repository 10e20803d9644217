"""Traces of custom rules, and the recursive calls of their function within them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from effax import tree
from effax.api.custom.call_site import CallSite
from effax.arrays.binding import Operand
from effax.arrays.ref import Ref
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, shared_consts
from effax.ir.errors import ConcretizationError
from effax.ir.recursion import carried
from effax.ir.syntax import Jaxpr
from effax.ir.trace import values_read


class RuleTrace:
    """Rules of a call that are being traced.

    Attributes:
        fun: the function that the rules belong to.
        site: the call.
        flat: the traced function, where it serves for all recursive calls; else None.
        recursive: whether a rule calls the function on the same types.
        other_primals: whether such a call has other arguments than the rule.
        primals: the arguments of the call, as the rule that is being traced gets them.
        consts: the values that the function and its rules close over, once they are known.
    """

    def __init__(self, fun: object, site: CallSite, flat: FlatFunction | None) -> None:
        self.fun = fun
        self.site = site
        self.flat = flat
        self.recursive = False
        self.other_primals = False
        self.primals: Sequence[object] = ()
        self.consts: list[Operand] = []

    def is_for(self, fun: object, site: CallSite) -> bool:
        """Return whether a call applies the same function to the same types."""
        return self.fun is fun and self.site.is_same_call(site)


class _RuleTraces(threading.local):
    """The rules traced in this thread, innermost last, and the outermost that a call recurs to."""

    def __init__(self) -> None:
        self.stack: list[RuleTrace] = []
        self.outermost = sys.maxsize


_rule_traces = carried(_RuleTraces())


class _RecursiveCalls:
    """A flag: recursive calls in the block belong to rules around it."""

    escaped = False


@contextmanager
def recursive_calls() -> Iterator[_RecursiveCalls]:
    """Watch for calls, traced in the block, that recur to rules which began before it.

    A program with such calls is valid in that place only, and must not be cached.
    """
    seen = _RecursiveCalls()
    before, _rule_traces.outermost = _rule_traces.outermost, sys.maxsize
    here = len(_rule_traces.stack)
    try:
        yield seen
    finally:
        seen.escaped = _rule_traces.outermost < here
        _rule_traces.outermost = min(before, _rule_traces.outermost)


@contextmanager
def outside_rules() -> Iterator[None]:
    """Trace a rule that a transformation requests: it is nested in no other rule."""
    stack, _rule_traces.stack = _rule_traces.stack, []
    try:
        yield
    finally:
        _rule_traces.stack = stack


def is_nondiff(x: object) -> bool:
    """Return whether ``x`` is a nondifferentiable argument of a call whose rules are traced."""
    return any(x is leaf for rules in _rule_traces.stack for leaf in tree.leaves(rules.site.fixed))


def trace_once(
    fun: object, site: CallSite, leaves: Sequence[Operand], trace: Callable[[], FlatFunction]
) -> tuple[FlatFunction, bool]:
    """Return the traced function of a call, and whether it serves for the recursive calls too.

    Each function is traced once, so that functions with rules may be nested at many levels.
    """
    around = next((r for r in reversed(_rule_traces.stack) if r.is_for(fun, site)), None)
    if around is not None and around.flat is not None:
        return around.flat, False
    before = values_read()
    with recursive_calls() as seen:
        flat = trace()
    # Not reusable are recursive calls, whose depth counts the rules from their place; references,
    # which are checked for aliases at each call; and a trace that depends on values.
    refs = any(isinstance(x, Ref) for x in (*leaves, *flat.consts))
    return flat, not (seen.escaped or refs or values_read() != before)


def set_primals(fun: object, site: CallSite, primals: Sequence[object]) -> None:
    """Set the arguments of the call, as the rule that is being traced gets them."""
    rules = _rule_traces.stack[-1] if _rule_traces.stack else None
    if rules is not None and rules.fun is fun and rules.site is site:
        rules.primals = primals


def _are_same(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return whether two lists have the same values: objects, or tracers of one variable."""
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


class RecursiveCall(NamedTuple):
    """A call within its own rules: its constants, its program, and the depth of its rules."""

    consts: list[Operand]
    jaxpr: Jaxpr
    depth: int


def recursive_call(
    fun: object, site: CallSite, flat: FlatFunction, leaves: Sequence[Operand]
) -> RecursiveCall | None:
    """Return the recursive call of a function whose rules are being traced; else None."""
    stack = _rule_traces.stack
    for i in reversed(range(len(stack))):
        rules = stack[i]
        if rules.is_for(fun, site):
            rules.recursive = True
            rules.other_primals |= not _are_same(rules.primals, leaves)
            _rule_traces.outermost = min(_rule_traces.outermost, i)
            consts, (jaxpr,) = shared_consts([flat], rules.consts)
            return RecursiveCall(consts, jaxpr, len(stack) - 1 - i)
    return None


def with_rules(
    fun: object,
    site: CallSite,
    flat: FlatFunction,
    reusable: bool,
    trace_rules: Callable[[], Sequence[FlatFunction]],
) -> tuple[list[Operand], list[Jaxpr]]:
    """Return the programs of a function and of its rules, over one list of constants.

    A recursive call takes the constants of all of them, so rules with such calls are traced again
    once these are known. ``reusable``: whether ``flat`` serves for all recursive calls.
    """
    rules = RuleTrace(fun, site, flat if reusable else None)
    before = values_read()
    _rule_traces.stack.append(rules)
    try:
        consts, jaxprs = shared_consts([flat, *trace_rules()])
        while rules.recursive and len(rules.consts) != len(consts):
            rules.consts = consts
            consts, jaxprs = shared_consts([flat, *trace_rules()], consts)
    finally:
        _rule_traces.stack.pop()
    if rules.other_primals and values_read() != before:
        raise ConcretizationError(
            f"a rule of {site.label} depends on values, and calls {site.label} on others",
            expected=f"a call of {site.label} on the arguments of the rule",
            found="other arguments, for which the rule may decide otherwise",
            remedy="decide with `lax.cond` or `numpy.where` in the rule",
        )
    return consts, jaxprs
