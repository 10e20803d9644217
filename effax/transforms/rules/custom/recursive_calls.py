"""Calls of a function with derivatives of its own inside of its own rules.

A rule may call the function that it belongs to, as in ``df(x, t) = (f(x), f(x + π/2)·t)``. That
call has no rules: they are those around it, and it says how many rules out (0: the innermost). When
a rule is put into a program its knots are tied again:

    custom_jvp_call[call=f rule={ lambda ; x t. let y = custom_jvp_call[call=f rule=0] x ... }]

becomes, differentiated, ``y = custom_jvp_call[call=f rule={ the same rule }] x ...``. So any order
of derivative finds the rule, and a program is finite. (Depths are de Bruijn's indices.)
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

UNTIED: Final = -1
"""The depth of a knot on other types than its rule's: it has no rule any more."""

Change = Callable[[Custom, int, int], Custom]
"""What becomes of a knot, from its depth and how many rules inside it is found."""


@memoize(maxsize=1024)
def has_knots(jaxpr: Jaxpr) -> bool:
    """Whether any call in the program, or in one that it holds, is a knot."""
    return any(
        _depth(eqn.prim) is not None or any(map(has_knots, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


def _depth(prim: Primitive) -> int | None:
    return prim.depth if isinstance(prim, CustomJvp | CustomVjp) else None


def is_knotted(prim: Primitive) -> bool:
    """Whether this is a knot, or a call in whose rules there is one."""
    if not isinstance(prim, CustomJvp | CustomVjp):
        return False
    return prim.depth is not None or any(map(has_knots, prim.subjaxprs()[1:]))


@memoize(maxsize=1024)
def tied(rule: Jaxpr, owner: Custom) -> Jaxpr:
    """A rule of ``owner`` for the place of the call: its knots are calls with all of the rules."""

    def tie(knot: Custom, depth: int, inside: int) -> Custom:
        if depth == inside:
            fits = knot.call.in_types == owner.call.in_types
            return _shifted(owner, inside) if fits else knot.at(UNTIED)
        # One that belongs further out is one rule nearer to it now.
        return knot.at(depth - 1) if depth > inside else knot

    return _Changed(tie).program(rule, 0)


def _shifted(owner: Custom, by: int) -> Custom:
    """A call as it is so many rules further inside: what is free in it is further away."""
    if not by:
        return owner

    def shift(knot: Custom, depth: int, inside: int) -> Custom:
        return knot.at(depth + by) if depth >= inside else knot

    made = _Changed(shift).prim(owner, 0)
    assert isinstance(made, CustomJvp | CustomVjp)
    return made


class _Changed:
    """One run over a program and what it holds, each program once for each depth."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.done: dict[tuple[Jaxpr, int], Jaxpr] = {}

    @with_fresh_stack
    def program(self, jaxpr: Jaxpr, inside: int) -> Jaxpr:
        if not has_knots(jaxpr):
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
        held = prim.subjaxprs()
        if not any(map(has_knots, held)):
            return prim
        return prim.with_subjaxprs([self.program(jaxpr, inside) for jaxpr in held])


def is_tight(owner: Custom) -> bool:
    """Whether the knots in the rules of ``owner`` that are calls of it have its types."""
    if owner.depth is not None:
        return True
    fits = True

    def look(knot: Custom, depth: int, inside: int) -> Custom:
        nonlocal fits
        fits = fits and (depth != inside or knot.call.in_types == owner.call.in_types)
        return knot

    for rule in owner.subjaxprs()[1:]:
        _Changed(look).program(rule, 0)
    return fits


def untied(prim: Custom) -> TransformError:
    """The error for a knot that is differentiated where no call is around it."""
    return TransformError(
        f"{prim.label} is differentiated inside of its own rule",
        expected="a rule that is differentiated as part of the call that it belongs to",
        found=f"a call of {prim.label} in a rule of {prim.label}, on other types than the rule's",
        remedy="let the rule call the function on arguments of the types that it was given",
    )
