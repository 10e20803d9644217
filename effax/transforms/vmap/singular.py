"""Inputs of a program whose cotangent may be nan although the cotangents of its results are zero.

Reverse mode multiplies cotangents by partial derivatives, and ``0·inf`` is nan. An equation whose
partial derivatives are constants, such as an addition, multiplies by finite numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.build import Template
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import BroadcastInDim, Div
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type, is_inexact
from effax.transforms.framework.propagation import Mask, mentions_refs
from effax.transforms.framework.rules import RuleSet
from effax.transforms.jvp import jvp_template


@memoize(maxsize=4096)
def singular_inputs(jaxpr: Jaxpr, rules: RuleSet) -> Mask:
    """Return for each input whether a product with a partial derivative is added to its cotangent.

    That of a reference is what is added for values that are read from it.
    """
    found: set[int] = set()
    # What a reference has may be read before it is written, in the iteration of a loop after.
    while _sweep(jaxpr, found, rules) and mentions_refs(jaxpr):
        pass
    return tuple([v.id in found for v in jaxpr.binders])


def _sweep(jaxpr: Jaxpr, found: set[int], rules: RuleSet) -> bool:
    """Add the singular variables that one sweep backward finds. Return whether there are more."""
    before = len(found)
    for eqn in reversed(jaxpr.eqns):
        mask = _singular_operands(eqn, found, rules)
        found.update(
            [a.id for a, has in zip(eqn.ins, mask, strict=True) if has and isinstance(a, Var)]
        )
    return len(found) > before


def _singular_operands(eqn: Eqn, found: set[int], rules: RuleSet) -> Mask:
    types = tuple([a.type for a in eqn.ins])
    every = tuple(map(is_inexact, types))
    refs = [a for a in eqn.ins if isinstance(a, Var) and isinstance(a.type, RefType)]
    if not any(every) or any(v.id in found for v in (*eqn.outs, *refs)):
        return every
    none = (False,) * len(types)
    if eqn.prim.subjaxprs():
        return _singular_in_regions(eqn, every, rules)
    if eqn.effects:
        # Reads and writes move values; side effects have no derivative.
        return none
    mask = tuple([has and isinstance(a, Var) for a, has in zip(eqn.ins, every, strict=True)])
    constants = tuple([isinstance(a, Lit) and _is_regular(a) for a in eqn.ins])
    constant = _has_constant_derivatives(eqn.prim, types, mask, constants, rules)
    return none if constant else every


def _singular_in_regions(eqn: Eqn, every: Mask, rules: RuleSet) -> Mask:
    """Return the operands of a primitive with subjaxprs; for a loop, all of them or none."""
    regions = eqn.prim.regions()
    if not regions or eqn.prim.has_own_rules:
        return every
    singular = [False] * len(every)
    for region in regions:
        for operand, has in zip(region.args, singular_inputs(region.jaxpr, rules), strict=True):
            singular[operand] = singular[operand] or has
    if any(singular) and any(region.repeats for region in regions):
        return every
    return tuple(singular)


def _is_regular(lit: Lit) -> bool:
    """Return whether products and quotients with the constant are finite."""
    return bool(np.isfinite(lit.value) and lit.value != 0)


@memoize(maxsize=1 << 13)
def _has_constant_derivatives(
    prim: Primitive, types: tuple[Type, ...], mask: Mask, constants: Mask, rules: RuleSet
) -> bool:
    """Return whether tangents of an equation are multiplied by finite constants at most.

    Args:
        prim: the primitive, without subjaxprs.
        types: the types of its operands.
        mask: which operands have tangents.
        constants: which operands are finite constants other than 0.
        rules: the rules.
    """
    try:
        made = jvp_template(rules, prim, types, mask) if any(mask) else None
    except Exception:  # noqa: BLE001  a user's rule may raise anything
        return False
    return made is None or _multiplies_by_constants(made.body, types, mask, constants)


def _multiplies_by_constants(
    body: Template, types: Sequence[Type], mask: Mask, given: Mask
) -> bool:
    """Return whether no equation of a template combines a tangent with an inexact primal."""
    n_primals = len(types)
    first = n_primals + sum(mask)
    tangents = set(range(n_primals, first))
    constants = {i for i, has in enumerate(given) if has}
    constants |= {first + i for i, lit in enumerate(body.lits) if np.isfinite(lit.value)}
    zeros = {first + i for i, lit in enumerate(body.lits) if lit.value == 0}
    inexact = {i for i, t in enumerate(types) if is_inexact(t)}
    inexact |= {first + i for i, lit in enumerate(body.lits) if is_inexact(lit.type)}
    top = first + len(body.lits)
    for step in body.steps:
        made = range(top, top + len(step.out_types))
        top += len(step.out_types)
        linear = tangents.intersection(step.slots)
        others = inexact.intersection(step.slots) - tangents
        if linear and (step.effects or step.prim.subjaxprs() or not others <= constants):
            return False
        if linear and isinstance(step.prim, Div) and zeros.intersection(others):
            return False
        if linear:
            tangents.update(made)
        elif isinstance(step.prim, BroadcastInDim) and constants.issuperset(step.slots):
            constants.update(made)
            zeros.update(made if zeros.intersection(step.slots) else ())
        inexact.update(i for i, t in zip(made, step.out_types, strict=True) if is_inexact(t))
    return True
