"""One application in two halves, made once and kept as templates."""

from __future__ import annotations

from typing import NamedTuple

from effax.effects import ArgIndex, Row
from effax.ir.build import Template, template
from effax.ir.memo import remembered
from effax.ir.primitive import Primitive
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Policy, RuleBook, SplitRule, WholeOnly


class Split(NamedTuple):
    """A split application prepared for being put in the place of many."""

    known: Template
    unknown: Template
    known_outs: Mask
    unknown_args: tuple[int, ...]
    unknown_effects: Row[ArgIndex]


@remembered(maxsize=4096)
def split_template(
    book: RuleBook,
    prim: Primitive,
    types: tuple[Type, ...],
    known: Mask,
    policy: Policy | None,
) -> Split | None:
    """The halves of an application; None where it is not split."""
    rule = split_rule(book, prim)
    found = None if rule is None else rule(book, prim, types, known, policy)
    if found is None:
        return None
    return Split(
        template(found.known),
        template(found.unknown),
        found.known_outs,
        found.unknown_args,
        found.unknown.effects,
    )


def split_rule(book: RuleBook, prim: Primitive) -> SplitRule[Primitive] | None:
    """The rule of a primitive; None where it has none."""
    rule = book.of(prim).split
    return None if isinstance(rule, WholeOnly) else rule
