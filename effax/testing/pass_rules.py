"""Programs for the rules of a pass: instances of left sides that random programs may lack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.passes.lift import Lifted
from effax.passes.pipeline import AnyPass, Pass, Pipeline
from effax.testing.generate.rule_programs import has_own_programs, rule_programs
from effax.testing.laws.rules import instances, program_of
from effax.transforms.optimize.rewrite import Rewriting
from effax.transforms.optimize.rewrite_rule import RewriteRule

MOST_RULES: Final = 30
"""The rules of a pass with more are left to their own law, ``rule_is_sound``, for its time."""

FEW_INSTANCES: Final = 8
"""The number of instances of a rule, in different dtypes."""


def rules_of(step: AnyPass) -> tuple[RewriteRule, ...]:
    """Return the rules of which a pass, or its parts, consist."""
    match step:
        case Pass(transform=Rewriting(rules=rules) | Lifted(function=Rewriting(rules=rules))):
            return rules
        case Pass():
            return ()
        case Pipeline():
            return tuple([rule for part in step.passes for rule in rules_of(part)])
        case _:
            return rules_of(step.pass_)


def programs_of_rules(step: AnyPass) -> Iterator[Jaxpr]:
    """Yield programs to which the rules of a pass should apply."""
    rules = rules_of(step)
    for rule in rules if len(rules) <= MOST_RULES else ():
        # A left side with parameters and no samples has no instances.
        with suppress(BadArgument):
            yield from islice(_programs_of_rule(rule), FEW_INSTANCES)


def _programs_of_rule(rule: RewriteRule) -> Iterator[Jaxpr]:
    if has_own_programs(rule):
        return rule_programs(rule)
    return (program_of(rule, instance) for instance in instances(rule))
