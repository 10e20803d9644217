"""The random programs on which a pass is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from effax.ir.syntax import Jaxpr
from effax.testing.generate.features import COMPILED, Features
from effax.testing.generate.focus import Focused
from effax.testing.generate.instances import FORMS
from effax.testing.generate.random_programs import (
    SEEDS,
    is_step_of,
    program,
    program_with,
    redundant_program,
    varied_program,
)
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.redundant import with_redundancy
from effax.testing.generate.steps import check_features
from effax.testing.laws.runner import Draw, Drawn
from effax.transforms.optimize.rewrite import App

CORNERS: Final = ("refs.nested", "scan", "refs.nested")
"""Kinds of steps with rare cases: nested stores between loads, loops of one iteration."""


class WantedPrograms(NamedTuple):
    """The programs on which a pass is tried: their focus and features, and those of the caller."""

    focus: Focused
    features: Features
    compiled: bool
    given: tuple[Jaxpr, ...] = ()

    def more(self, names: Sequence[str], patterns: Sequence[App]) -> WantedPrograms:
        """Return it with further steps and patterns."""
        focus = self.focus._replace(
            names=tuple(dict.fromkeys([*self.focus.names, *names])),
            patterns=tuple(dict.fromkeys([*self.focus.patterns, *patterns])),
        )
        return self._replace(focus=focus)


def _features_of(wanted: WantedPrograms) -> list[Features]:
    """Return the features of programs, one for each kind of step in focus."""
    features = COMPILED if wanted.compiled else wanted.features
    each = [replace(features, focus=name) for name in wanted.focus.names] or [features]
    for one in each:
        check_features(one)
    return each


def redundant_programs(wanted: WantedPrograms) -> Draw:
    """Return a generator of programs with repeated, overwritten and undone computations."""
    each = _features_of(wanted)
    patterns = wanted.focus.patterns
    return _meeting(
        lambda choose: redundant_program(choose, choose.pick(each), patterns=patterns), wanted
    )


def plans_of(wanted: WantedPrograms) -> list[tuple[Draw, int]]:
    """Return generators of programs, with their tenths of the examples."""
    each, patterns = _features_of(wanted), wanted.focus.patterns
    features = COMPILED if wanted.compiled else wanted.features
    bare = replace(features, depth=0, focus="")
    corners = [name for name in CORNERS if is_step_of(name, features)]
    draws: list[tuple[Callable[[RandomSource], Jaxpr], int]] = [
        (lambda choose: program_with(choose, patterns or FORMS, bare), 3),
        (lambda choose: varied_program(choose, choose.pick(each)), 3),
    ]
    if wanted.compiled:
        draws = [(draw, 5) for draw, _ in draws]
    plans = [(_meeting(draw, wanted), tenths) for draw, tenths in draws]
    if not wanted.compiled:
        plans.append((redundant_programs(wanted), 3))
    if corners and features.depth:

        def corner(choose: RandomSource) -> Jaxpr:
            focused = replace(features, focus=choose.pick(corners))
            return program(choose, focused, steps=choose.between(1, 4))

        plans.append((_meeting(corner, wanted), 9))
    return plans


REDRAWN: Final = 20
"""The number of programs that are generated for one that meets a required condition."""


def _meeting(draw: Callable[[RandomSource], Jaxpr], wanted: WantedPrograms) -> Draw:
    """Return a generator of programs that meet the focus, as far as some are found.

    Half of them are changed copies of earlier ones.
    """
    if not any(one.is_required for one in wanted.focus.conditions):
        return lambda choose: (draw(choose),)
    met = [jaxpr for jaxpr in wanted.given if wanted.focus.meets(jaxpr)]

    def drawn(choose: RandomSource) -> Drawn:
        jaxpr = draw(choose)
        for _ in range(REDRAWN):
            if met and choose.chance(50):
                jaxpr = with_redundancy(choose.pick(met), choose.below(SEEDS))
            if wanted.focus.meets(jaxpr):
                if len(met) < REDRAWN:
                    met.append(jaxpr)
                return (jaxpr,)
            jaxpr = varied_program(choose, wanted.features)
        return (choose.pick(met) if met else jaxpr,)

    return drawn
