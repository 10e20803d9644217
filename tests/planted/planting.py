"""Plant a bug: replace a rule of a rule set, or wrap a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from effax.ir.primitive import Primitive
from effax.ir.syntax import Eqn
from effax.testing.laws.transformations import Passes
from effax.transforms.framework.rules import RuleBuilder, RuleSet
from effax.transforms.rules.default import DEFAULT_RULES

Out = TypeVar("Out")
Edit = Callable[[Eqn], Eqn | None]
"""What becomes of an equation that a rule has built; None: it is left out."""


class Bug(NamedTuple):
    """Something wrong.

    Attributes:
        name: what is wrong.
        laws: which laws are to notice: "jvp", "vmap", "partial_eval", "transpose", ...
        focus: the kinds of step that the programs are full of, in turn.
        passes: the passes, with the bug.
    """

    name: str
    laws: str
    focus: tuple[str, ...]
    passes: Passes


def planted(prim: type[Primitive], **rules: object) -> RuleSet:
    """The library's book with some rules of a primitive replaced."""
    right = DEFAULT_RULES.rules[prim]
    return DEFAULT_RULES.extend(prim, replace(right, **rules))  # type: ignore[arg-type]  # dataclasses.replace checks the names


def wrong_rule(
    name: str, laws: str, focus: str | tuple[str, ...], prim: type[Primitive], **rules: object
) -> Bug:
    """A bug in the rules of one primitive."""
    steps = (focus,) if isinstance(focus, str) else focus
    return Bug(name, laws, steps, Passes(planted(prim, **rules)))


def edited(rule: Callable[..., Out], edit: Edit) -> Callable[..., Out]:
    """The rule, with an edit of each equation that it builds."""

    def tampered(b: RuleBuilder, *args: object) -> Out:
        start = len(b.eqns)
        given = rule(b, *args)
        b.eqns[start:] = [new for eqn in b.eqns[start:] if (new := edit(eqn)) is not None]
        return given

    return tampered


def using(
    old: type[Primitive] | tuple[type[Primitive], ...], new: Callable[[Primitive], Primitive]
) -> Edit:
    """The edit that puts another primitive in the place of those of a kind."""

    def edit(eqn: Eqn) -> Eqn:
        return eqn._replace(prim=new(eqn.prim)) if isinstance(eqn.prim, old) else eqn

    return edit


def without(*kinds: type[Primitive]) -> Edit:
    """The edit that leaves out equations of these kinds; they must have no results in use."""
    return lambda eqn: None if isinstance(eqn.prim, kinds) else eqn


def last_of(eqns: Sequence[Eqn], *kinds: type[Primitive]) -> int | None:
    """Return the position of the last equation of these kinds."""
    found = [i for i, eqn in enumerate(eqns) if isinstance(eqn.prim, kinds)]
    return found[-1] if found else None
