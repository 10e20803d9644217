"""The focus of random programs: steps and patterns of which they are full, and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple, cast

from effax.ir.analysis.queries import walk
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.primitive import Primitive
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import array_type, ref_type
from effax.testing.generate.features import ANYTHING
from effax.testing.generate.instances import Wanted, patterns_of
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import (
    NESTED,
    all_step_names,
    check_features,
    step_names,
    steps_named,
    unknown_step,
)
from effax.transforms.optimize.rewrite import App, RewriteRule, Seq
from effax.transforms.optimize.sequence_matcher import match

Focus = str | Wanted | Seq | Callable[[Jaxpr], bool]
"""The name of a kind of step, a primitive or its class, a pattern, a rule, or a predicate."""


class Condition(NamedTuple):
    """A part of a focus: whether a program meets it.

    Attributes:
        name: its name in reports.
        meets: the predicate.
        is_required: whether programs that do not meet it are drawn again.
    """

    name: str
    meets: Callable[[Jaxpr], bool]
    is_required: bool


class Focused(NamedTuple):
    """The content of random programs.

    Attributes:
        names: kinds of steps.
        patterns: patterns, of which instances are inserted.
        conditions: a predicate for each part of the focus.
    """

    names: tuple[str, ...] = ()
    patterns: tuple[App, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def meets(self, jaxpr: Jaxpr) -> bool:
        """Return whether the program meets a condition that is required, if there are any."""
        required = [one for one in self.conditions if one.is_required]
        return not required or any(one.meets(jaxpr) for one in required)


def focus_of(given: Focus | Sequence[Focus], programs: Sequence[Jaxpr] = ()) -> Focused:
    """Return the steps, patterns and conditions of a focus.

    Raises BadArgument for others, and for patterns that cannot be inserted, as those with
    parameters, unless one of the caller's programs has them.
    """
    several: Sequence[object] = (
        given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    )
    names: list[str] = []
    patterns: list[App] = []
    conditions: list[Condition] = []
    for one in several:
        if isinstance(one, str):
            check_features(replace(ANYTHING, focus=one))
            if one:
                names.append(one)
                conditions.append(Condition(one, _has_any(primitives_of(one)), False))
        elif isinstance(one, type) and issubclass(one, Primitive):
            found = _steps_or_patterns(one)
            names += found.names
            patterns += found.patterns
            conditions += found.conditions
        elif isinstance(one, Primitive):
            condition = Condition(str(one), _has_primitive(one), False)
            found_patterns = _patterns_in(one, condition, programs)
            patterns += found_patterns
            conditions.append(condition._replace(is_required=not found_patterns))
        elif isinstance(one, App | Seq | RewriteRule):
            text = one.name if isinstance(one, RewriteRule) else str(one)
            condition = Condition(text, _has_instance(one), False)
            # A sequence of equations with effects is looked for: it cannot be inserted.
            found_patterns = ()
            if not isinstance(one, Seq) and not _is_sequence(one):
                found_patterns = _patterns_in(one, condition, programs)
            patterns += found_patterns
            conditions.append(condition._replace(is_required=not found_patterns))
        elif callable(one):
            predicate = cast("Callable[[Jaxpr], bool]", one)
            name = getattr(one, "__name__", type(one).__name__)
            conditions.append(Condition(name, _checked(name, predicate), True))
        else:
            raise _unknown(one)
    return Focused(tuple(names), tuple(patterns), tuple(conditions))


def _steps_or_patterns(cls: type[Primitive]) -> Focused:
    """Return the patterns of a class; else the steps that append it."""
    condition = Condition(cls.name, _has_any(frozenset({cls.name})), False)
    try:
        patterns = patterns_of(cls)
        if patterns:
            return Focused((), patterns, (condition,))
    except BadArgument:
        # It has parameters.
        pass
    names = steps_of(cls.name)
    if names:
        return Focused(names, (), (condition,))
    # Programs of the caller may have it.
    return Focused((), (), (condition._replace(is_required=True),))


def _unknown(one: object) -> BadArgument:
    return BadArgument(
        "programs cannot be full of this",
        expected="the name of a kind of step, a primitive, a pattern, a rule, a predicate of a "
        "program, or a list of these",
        found=f"{one!r:.80}",
        remedy=f"names of kinds of steps are {', '.join(all_step_names())}",
    )


def _is_sequence(one: App | Seq | RewriteRule) -> bool:
    return isinstance(one.left if isinstance(one, RewriteRule) else one, Seq)


def _has_primitive(prim: Primitive) -> Callable[[Jaxpr], bool]:
    return lambda jaxpr: any(place.eqn.prim == prim for place in walk(jaxpr))


def _patterns_in(
    one: Primitive | App | RewriteRule, condition: Condition, programs: Sequence[Jaxpr]
) -> tuple[App, ...]:
    """Return the patterns to insert; none if they cannot be, but are in programs of the caller."""
    try:
        return _patterns(one)
    except BadArgument:
        if any(map(condition.meets, programs)):
            return ()
        raise


def _patterns(one: Primitive | App | RewriteRule) -> tuple[App, ...]:
    try:
        found = patterns_of(one)
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


def _checked(name: str, predicate: Callable[[Jaxpr], bool]) -> Callable[[Jaxpr], bool]:
    def meets(jaxpr: Jaxpr) -> bool:
        found: object = predicate(jaxpr)
        if not isinstance(found, bool):
            raise BadArgument(
                f"the predicate {name} of `focus` does not return a boolean",
                expected="True or False",
                found=f"{found!r:.60}",
                remedy="is a `return` missing?" if found is None else "convert it: `bool(...)`",
            )
        return found

    return meets


def _has_any(names: frozenset[str]) -> Callable[[Jaxpr], bool]:
    return lambda jaxpr: any(place.eqn.prim.name in names for place in walk(jaxpr))


def _has_instance(pattern: App | Seq | RewriteRule) -> Callable[[Jaxpr], bool]:
    return lambda jaxpr: bool(match(pattern, jaxpr))


TRIED: Final = 16
"""The number of applications from which the primitives of a kind of step are learned."""

_TYPES: Final = (
    *(array_type((3,), "float32"), array_type((2, 3), "float64"), array_type((3,), "int32")),
    *(array_type((3,), "bool"), array_type((), "int32"), ref_type(array_type((3,), "float32"))),
    ref_type(array_type((2, 3), "float64")),
)

_OF_NESTED: Final = {"remat": "remat2", "solve": "custom_linear_solve"}


@cached(maxsize=256)
def primitives_of(name: str) -> frozenset[str]:
    """Return the names of the primitives for which a kind of step is there."""
    if name in NESTED:
        return frozenset({_OF_NESTED.get(name, name)})
    found: set[str] = set()
    for i in range(TRIED):
        g = ProgramBuilder(RandomSource(Random(i)), replace(ANYTHING, control=()), _TYPES)
        for step in steps_named(name, axes=True):
            with suppress(EffaxError):
                step(g)
        # Earlier equations prepare the operands.
        found.update([eqn.prim.name for eqn in g.b.eqns[-1:]])
    return frozenset(found)


@cached(maxsize=256)
def steps_of(prim: str) -> tuple[str, ...]:
    """Return the kinds of steps that append a primitive."""
    return tuple([name for name in dict.fromkeys(step_names()) if prim in primitives_of(name)])
