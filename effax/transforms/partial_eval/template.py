"""One application in two halves, made once and kept as templates."""

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
    """A split application prepared for being put in the place of many."""

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
    """The halves of an application; None where it is not split."""
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
    """The rule of a primitive; None where it has none."""
    rule = rules.of(prim).split
    return None if isinstance(rule, Indivisible) else rule
