"""The known and unknown jaxprs of one equation, built once and cached as templates."""

from __future__ import annotations

from typing import NamedTuple

from effax.effects import ArgIndex, Row
from effax.ir.build import Template, template
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Indivisible, PartialEvalRule, Policy, RuleSet


class PartialEvalTemplate(NamedTuple):
    """The known and unknown jaxprs of an equation as templates."""

    known: Template
    unknown: Template
    known_outs: Mask
    unknown_args: tuple[int, ...]
    unknown_effects: Row[ArgIndex]


@memoize(maxsize=4096)
def partial_eval_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    known: Mask,
    policy: Policy | None,
) -> PartialEvalTemplate | None:
    """Return the templates of an equation; None if it is not split."""
    rule = partial_eval_rule(rules, prim)
    found = None if rule is None else rule(rules, prim, types, known, policy)
    if found is None:
        return None
    return PartialEvalTemplate(
        template(found.known),
        template(found.unknown),
        found.known_outs,
        found.unknown_args,
        found.unknown.effects,
    )


def partial_eval_rule(rules: RuleSet, prim: Primitive) -> PartialEvalRule[Primitive] | None:
    """Return the rule of a primitive; None if it is indivisible."""
    rule = rules.of(prim).split
    return None if isinstance(rule, Indivisible) else rule
