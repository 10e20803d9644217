"""Recursive rule calls: calls of a function with custom derivatives within its own rules.

A rule may call the function that it belongs to, as in ``df(x, t) = (f(x), f(x + π/2)·t)``. Such a
call has a depth in place of rules: the number of rules between it and the rule of its function (0:
the innermost rule). When a rule is inlined, its recursive calls are unrolled once:

    custom_jvp_call[call=f rule={ lambda ; x t. let y = custom_jvp_call[call=f rule=0] x ... }]

differentiates to ``y = custom_jvp_call[call=f rule={ the same rule }] x ...``. So every order of
derivative finds the rule, and programs are finite. (Depths are de Bruijn indices.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomJvp, CustomVjp
from effax.ir.prims.custom import Custom
from effax.ir.recursion import with_fresh_stack
from effax.ir.syntax import Jaxpr

UNBOUND: Final = -1
"""The depth of a recursive call on types other than its rule's, which has no rule."""

Change = Callable[[Custom, int, int], Custom]
"""Replaces a recursive call, given its depth and the number of rules around it."""


@memoize(maxsize=1024)
def has_recursive_calls(jaxpr: Jaxpr) -> bool:
    """Return whether the jaxpr, or a subjaxpr, has a recursive rule call."""
    return any(
        _depth(eqn.prim) is not None or any(map(has_recursive_calls, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


def _depth(prim: Primitive) -> int | None:
    return prim.depth if isinstance(prim, CustomJvp | CustomVjp) else None


def has_recursive_rules(prim: Primitive) -> bool:
    """Return whether this is a recursive rule call, or its rules contain one."""
    if not isinstance(prim, CustomJvp | CustomVjp):
        return False
    return prim.depth is not None or any(map(has_recursive_calls, prim.subjaxprs()[1:]))


@memoize(maxsize=1024)
def unroll_rule(rule: Jaxpr, owner: Custom) -> Jaxpr:
    """Return a rule of ``owner`` for inlining: recursive calls become calls with all rules."""

    def unroll(call: Custom, depth: int, inside: int) -> Custom:
        if depth == inside:
            fits = call.call.in_types == owner.call.in_types
            return _shifted(owner, inside) if fits else call.at(UNBOUND)
        # A call of an outer function is now inside one rule less.
        return call.at(depth - 1) if depth > inside else call

    return _Rewrite(unroll).program(rule, 0)


def _shifted(owner: Custom, by: int) -> Custom:
    """Return a call for ``by`` more rules around it: its free depths grow by that number."""
    if not by:
        return owner

    def shift(call: Custom, depth: int, inside: int) -> Custom:
        return call.at(depth + by) if depth >= inside else call

    made = _Rewrite(shift).prim(owner, 0)
    assert isinstance(made, CustomJvp | CustomVjp)
    return made


class _Rewrite:
    """A memoized rewrite of a jaxpr and its subjaxprs, by the number of rules around them."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.done: dict[tuple[Jaxpr, int], Jaxpr] = {}

    @with_fresh_stack
    def program(self, jaxpr: Jaxpr, inside: int) -> Jaxpr:
        if not has_recursive_calls(jaxpr):
            return jaxpr
        made = self.done.get((jaxpr, inside))
        if made is None:
            eqns = [eqn._replace(prim=self.prim(eqn.prim, inside)) for eqn in jaxpr.eqns]
            made = self.done[jaxpr, inside] = jaxpr.replace(eqns=eqns)
        return made

    def prim(self, prim: Primitive, inside: int) -> Primitive:
        if isinstance(prim, CustomJvp | CustomVjp):
            if prim.depth is not None:
                return self.change(prim, prim.depth, inside)
            call, *rules = prim.subjaxprs()
            made = [self.program(rule, inside + 1) for rule in rules]
            return prim.with_subjaxprs([self.program(call, inside), *made])
        subjaxprs = prim.subjaxprs()
        if not any(map(has_recursive_calls, subjaxprs)):
            return prim
        return prim.with_subjaxprs([self.program(jaxpr, inside) for jaxpr in subjaxprs])


def recurs_on_own_types(owner: Custom) -> bool:
    """Return whether the recursive calls of ``owner`` in its rules have its types."""
    if owner.depth is not None:
        return True
    fits = True

    def look(call: Custom, depth: int, inside: int) -> Custom:
        nonlocal fits
        fits = fits and (depth != inside or call.call.in_types == owner.call.in_types)
        return call

    for rule in owner.subjaxprs()[1:]:
        _Rewrite(look).program(rule, 0)
    return fits


def unbound_call_error(prim: Custom) -> TransformError:
    """Return the error for differentiating a recursive call outside of the call of its rule."""
    return TransformError(
        f"{prim.label} is differentiated inside its own rule",
        expected="a rule differentiated as part of its call",
        found=f"a call of {prim.label} in a rule of {prim.label}, on other types than the rule's",
        remedy="let the rule call the function on arguments of its own types",
    )
