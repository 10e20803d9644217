"""The table of steps of a random program, and their names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from effax.ir.errors import BadArgument
from effax.ir.families import declared
from effax.ir.state import cached
from effax.testing.generate.features import CONTROL, Features
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Nested, Step, Steps, Weighted

FAMILY_STEPS: Final = declared("effax.testing.generate", "STEPS", Steps)
"""The steps of each family."""


def _rows(kind: str) -> Weighted:
    return tuple([row for steps in FAMILY_STEPS.values() for row in getattr(steps, kind)])


LINEAR: Final = _rows("linear")
NONLINEAR: Final = _rows("nonlinear")
COMPLEXES: Final = _rows("complexes")
KEYS: Final = _rows("keys")
OF_REFS: Final = _rows("refs")
OF_AXES: Final = _rows("axes")
NESTED: Final[dict[str, tuple[int, Nested]]] = {
    name: row for steps in FAMILY_STEPS.values() for name, row in steps.nested.items()
}


def generate(g: ProgramBuilder, most: int) -> None:
    """Append at most so many steps, as far as the budget lasts."""
    table = _table(g.features, g.theme, bool(g.linear), g.depth > 0, bool(g.axes))
    for taken in range(most):
        first = taken == 0 and not g.is_nested
        if g.budget[0] <= 0 or not (first or g.choose.below(16)):
            return
        g.budget[0] -= 1
        g.choose.pick(table)(g)


THEMES: Final[tuple[dict[str, int], ...]] = (
    {},
    {"refs": 3, "control": 2},
    {"control": 4},
    {"linear": 2, "refs": 2},
)
"""The factors of the weights of some kinds of steps, so that rare ones meet."""


@cached(maxsize=256)
def _table(
    features: Features, theme: int, linear: bool, may_nest: bool, axes: bool
) -> tuple[Step, ...]:
    rows: dict[str, list[tuple[int, Step]]] = {"other": [], "linear": [*LINEAR]}
    if linear:
        rows["linear"] += _rows("fixed")
    else:
        rows["other"] += NONLINEAR
        if features.complexes:
            rows["other"] += COMPLEXES
        if not features.differentiable:
            rows["other"] += _rows("jumping")
    if axes:
        rows["axes"] = [*OF_AXES]
        if not features.differentiable and not linear:
            rows["axes"] += _rows("jumping_axes")
    if features.keys and not linear:
        rows["other"] += KEYS
    if features.refs:
        rows["refs"] = [*OF_REFS]
    if may_nest:
        rows["control"] = [
            (weight, _growing(step)) for weight, step in (NESTED[name] for name in features.control)
        ]
    focused = steps_named(features.focus, axes) if features.focus else []
    table = [
        step
        for kind, found in rows.items()
        for weight, step in found
        for _ in range(weight * THEMES[theme].get(kind, 1))
    ]
    deep = features.focus in NESTED
    return (*(focused * len(table) if may_nest or not deep else []), *table)


def _growing(step: Nested) -> Step:
    return lambda g: step(g, generate)


def check_features(features: Features) -> None:
    """Raise BadArgument for unknown names of steps."""
    for name in features.control:
        if name not in NESTED:
            raise _unknown("unknown control flow", name, NESTED)
    if features.focus:
        steps_named(features.focus, axes=True)


def _unknown(what: str, name: str, known: Iterable[str]) -> BadArgument:
    """Return the error for an unknown name, with similar ones first."""
    parts = {one: one.rpartition(".")[2] for one in known}
    last = name.rpartition(".")[2]
    near = [last] if last in parts.values() else get_close_matches(last, parts.values(), 3, 0.6)
    like = [one for one, part in parts.items() if part in near] or get_close_matches(name, parts)
    first = f"did you mean {' or '.join(like)}?\n            " if like else ""
    return BadArgument(
        what,
        expected="a known name",
        found=name,
        remedy=f"{first}known names are {', '.join(parts)}",
    )


def all_step_names() -> list[str]:
    """Return the names of all kinds of steps, those of programs with named axes too."""
    steps = (*LINEAR, *NONLINEAR, *COMPLEXES, *OF_REFS, *OF_AXES)
    return [*NESTED, *sorted({_name(step) for _, step in steps})]


def unknown_step(what: str, name: str) -> BadArgument:
    """Return the error for an unknown name of a step."""
    return _unknown(what, name, all_step_names())


def step_names(linear: bool = False) -> list[str]:
    """Return the names of all kinds of steps; if ``linear``, of those for linear programs."""
    rows = [*LINEAR, *OF_REFS] if linear else [*LINEAR, *NONLINEAR, *COMPLEXES, *OF_REFS]
    return [_name(step) for _, step in rows] + [*CONTROL, "solve"]


def steps_named(name: str, axes: bool) -> list[Step]:
    """Return the steps of a name; none for one of named axes without ``axes``."""
    if name in NESTED:
        return [_growing(NESTED[name][1])]
    steps = (*LINEAR, *NONLINEAR, *COMPLEXES, *OF_REFS, *OF_AXES)
    found: list[Step] = [step for _, step in steps if _name(step) == name]
    if not found:
        raise unknown_step("unknown kind of step", name)
    return [] if not axes and found[0] in [step for _, step in OF_AXES] else found


def _name(step: Step) -> str:
    return f"{step.__module__.rpartition('.')[2]}.{step.__name__}"
