"""Calls of a function with derivatives of its own inside of its own rules.

A rule may call the function that it belongs to, as in ``df(x, t) = (f(x), t·cos x)``. That call has
no rules (None): they are those of the call around it. When a rule is put into a program its knots
are tied again:

    custom_jvp_call[call=f rule={ lambda ; x t. let y = custom_jvp_call[call=f rule=None] x ... }]

becomes, differentiated, ``y = custom_jvp_call[call=f rule={ the same rule }] x ...``. So any order
of derivative finds the rule, and a program is finite.
"""

from __future__ import annotations

from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims.custom import CustomJvp, CustomVjp
from effax.ir.remember import remembered
from effax.ir.syntax import Jaxpr

Custom = CustomJvp | CustomVjp


def is_knot(prim: Primitive) -> bool:
    """Whether this is a call of the function around it."""
    match prim:
        case CustomJvp():
            return prim.rule is None
        case CustomVjp():
            return prim.fwd is None
        case _:
            return False


@remembered(maxsize=1024)
def has_knots(jaxpr: Jaxpr) -> bool:
    """Whether any call in the program, or in one that it holds, is a knot."""
    return any(is_knot(eqn.prim) or any(map(has_knots, eqn.prim.subjaxprs())) for eqn in jaxpr.eqns)


def is_knotted(prim: Primitive) -> bool:
    """Whether this is a call of a function that is called in its own rules, or such a call."""
    if not isinstance(prim, CustomJvp | CustomVjp):
        return False
    return is_knot(prim) or any(map(has_knots, prim.subjaxprs()[1:]))


@remembered(maxsize=1024)
def tied(rule: Jaxpr, owner: Custom) -> Jaxpr:
    """A rule of ``owner`` whose knots are calls with all of the owner's rules."""
    if not has_knots(rule):
        return rule
    eqns = [eqn._replace(prim=_tied_prim(eqn.prim, owner)) for eqn in rule.eqns]
    return rule.replace(eqns=eqns)


def _tied_prim(prim: Primitive, owner: Custom) -> Primitive:
    mine = _is_call_of(prim, owner)
    if mine and is_knot(prim):
        return owner
    held = prim.subjaxprs()
    if mine or not any(map(has_knots, held)):
        return prim
    return prim.with_subjaxprs([tied(jaxpr, owner) for jaxpr in held])


def _is_call_of(prim: Primitive, owner: Custom) -> bool:
    if not isinstance(prim, CustomJvp | CustomVjp) or type(prim) is not type(owner):
        return False
    return prim.label == owner.label and prim.call.in_types == owner.call.in_types


def is_tight(owner: Custom) -> bool:
    """Whether the knots of this label in the rules of ``owner`` are calls of it."""
    return all(_all_of(rule, owner) for rule in owner.subjaxprs()[1:])


def _all_of(rule: Jaxpr, owner: Custom) -> bool:
    for eqn in rule.eqns:
        prim = eqn.prim
        mine = _is_call_of(prim, owner)
        if is_knot(prim):
            if not mine and getattr(prim, "label", None) == owner.label:
                return False
        elif not mine and not all(_all_of(held, owner) for held in prim.subjaxprs()):
            return False
    return True


def untied(prim: Custom) -> TransformError:
    """The error for a knot that is differentiated where no call is around it."""
    return TransformError(
        f"{prim.label} is differentiated inside of its own rule",
        expected="a rule that is differentiated as part of the call that it belongs to",
        found=f"a call of {prim.label} in a rule of {prim.label}, on other types than the rule's",
        remedy="let the rule call the function on arguments of the types that it was given",
    )
