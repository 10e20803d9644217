"""The focus of random programs: steps and patterns of which they are full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.testing.generate.features import ANYTHING
from effax.testing.generate.instances import Wanted, patterns_of
from effax.testing.generate.steps import all_step_names, check_features, unknown_step
from effax.transforms.optimize.rewrite import App, RewriteRule

Focus = str | Wanted
"""A kind of step by its name, a primitive, a pattern, or a rule."""


def focus_of(given: Focus | Sequence[Focus]) -> tuple[tuple[str, ...], tuple[App, ...]]:
    """Return the names of steps and the patterns of a focus.

    Raises BadArgument for anything else, and for a class of primitives with parameters.
    """
    several: Sequence[object] = (
        given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    )
    names: list[str] = []
    patterns: list[App] = []
    for one in several:
        if isinstance(one, str):
            check_features(replace(ANYTHING, focus=one))
            names += [one] if one else []
        else:
            patterns += _patterns(one)
    return tuple(names), tuple(patterns)


def _patterns(one: object) -> tuple[App, ...]:
    prim = isinstance(one, Primitive) or (isinstance(one, type) and issubclass(one, Primitive))
    if not prim and not isinstance(one, App | RewriteRule):
        raise BadArgument(
            "programs cannot be full of this",
            expected="the name of a kind of step, a primitive, a pattern, a rule, or a list of "
            "these",
            found=f"{one!r:.80}",
            remedy=f"names of kinds of steps are {', '.join(all_step_names())}",
        )
    try:
        found = patterns_of(cast("Wanted", one))
    except BadArgument as error:
        raise _with_names(error, one) from None
    if not found:
        raise _with_names(
            BadArgument("programs cannot be full of a primitive that takes no arrays alone"), one
        )
    return found


def _with_names(error: BadArgument, one: object) -> BadArgument:
    """Return the error with the kinds of steps that append the primitive."""
    cls = one if isinstance(one, type) else type(one)
    named = unknown_step(error.what, cls.__name__.lower())
    return BadArgument(error.what, error.expected, error.found, named.remedy)
