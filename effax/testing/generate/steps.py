"""How a program grows: which steps there are, and how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from effax.ir.errors import BadArgument
from effax.testing.generate import (
    collective,
    control,
    custom,
    elementwise,
    index,
    reduce,
    refs,
    shape,
    shard,
    solve,
)
from effax.testing.generate.features import CONTROL, Features
from effax.testing.generate.program_builder import ProgramBuilder

Step = Callable[[ProgramBuilder], object]

LINEAR: Final[tuple[tuple[int, Step], ...]] = (
    (2, elementwise.negate),
    (4, elementwise.add),
    (4, elementwise.mul),
    (1, elementwise.div),
    (2, elementwise.select),
    (1, elementwise.select_many),
    (1, elementwise.convert),
    (2, reduce.sum_),
    (1, reduce.cumulative),
    (3, reduce.dot),
    (1, shape.reshape),
    (2, shape.broadcast),
    (1, shape.transpose),
    (1, shape.squeeze),
    (2, shape.slice_),
    (1, shape.concatenate),
    (1, shape.pad),
    (1, shape.reverse),
    (1, shape.iota),
    (2, shape.dynamic_slice),
    (2, shape.dynamic_update_slice),
    (3, index.gather),
    (3, index.scatter),
)
"""Steps that keep linear what is, with their weights; the simplest first."""

NONLINEAR: Final[tuple[tuple[int, Step], ...]] = (
    (5, elementwise.smooth),
    (2, elementwise.growing),
    (1, elementwise.of_positive),
    (1, elementwise.power),
    (2, elementwise.extremum),
    (2, elementwise.compare),
    (2, elementwise.integers),
    (1, elementwise.booleans),
    (2, reduce.extremum),
    (1, reduce.product),
    (1, reduce.cumulative_extremum),
    (1, reduce.position),
    (1, reduce.sort),
    (1, reduce.of_booleans),
)

OTHERS: Final[tuple[tuple[int, Step], ...]] = ((2, elementwise.complexes),)
"""Steps that not all programs take."""

OF_REFS: Final[tuple[tuple[int, Step], ...]] = (
    (7, refs.get),
    (7, refs.swap),
    (7, refs.addupdate),
    (4, refs.new),
    (2, refs.empty),
    (2, refs.consume),
)

OF_AXES: Final[tuple[tuple[int, Step], ...]] = (
    (24, collective.psum),
    (9, collective.gather),
    (12, collective.scatter),
    (12, collective.to_all),
    (12, collective.permute),
    (6, collective.vary),
    (9, collective.index),
)
"""Steps of programs that may use named axes."""

Holding = Callable[[ProgramBuilder, control.Grow], object]
"""A step that appends an equation with programs, and lets these grow."""

OF_CONTROL: Final[dict[str, tuple[int, Holding]]] = {
    "jit": (3, control.jit),
    "remat": (2, control.remat),
    "cond": (4, control.cond),
    "scan": (6, control.scan),
    "while": (4, control.loop),
    "shard_map": (6, shard.shard_map),
    "solve": (2, solve.solution),
    "custom": (6, custom.custom),
}


def grow(g: ProgramBuilder, most: int) -> None:
    """Let a program grow by at most so many steps, as far as the budget lasts."""
    table = _table(g.features, g.theme, bool(g.linear), g.depth > 0, bool(g.axes))
    for taken in range(most):
        first = taken == 0 and not g.is_held
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
"""How much more often steps of a kind are taken in a program: what is rare meets what is rare."""


@lru_cache(maxsize=256)
def _table(
    features: Features, theme: int, linear: bool, may_nest: bool, axes: bool
) -> tuple[Step, ...]:
    rows: dict[str, list[tuple[int, Step]]] = {"other": [], "linear": [*LINEAR]}
    if linear:
        few = ((2, elementwise.smooth), (1, elementwise.compare), (1, elementwise.integers))
        rows["linear"] += few
    else:
        rows["other"] += NONLINEAR
        if features.complexes:
            rows["other"] += OTHERS
        if not features.differentiable:
            rows["other"].append((1, elementwise.jumping))
    if axes:
        rows["axes"] = [*OF_AXES]
        if not features.differentiable and not linear:
            rows["axes"].append((9, collective.extremum))
    if features.refs:
        rows["refs"] = [*OF_REFS]
    if may_nest:
        rows["control"] = [
            (weight, _growing(step))
            for weight, step in (OF_CONTROL[name] for name in features.control)
        ]
    focused = _named(features.focus, axes) if features.focus else []
    table = [
        step
        for kind, found in rows.items()
        for weight, step in found
        for _ in range(weight * THEMES[theme].get(kind, 1))
    ]
    deep = features.focus in OF_CONTROL
    return (*(focused * len(table) if may_nest or not deep else []), *table)


def _growing(step: Holding) -> Step:
    return lambda g: step(g, grow)


def check_features(features: Features) -> None:
    """Raise BadArgument for names that no step has."""
    for name in features.control:
        if name not in OF_CONTROL:
            raise _unknown("there is no such control flow", name, OF_CONTROL)
    if features.focus:
        _named(features.focus, axes=True)


def _unknown(what: str, name: str, known: Iterable[str]) -> BadArgument:
    """The error for a name of a step that does not exist; the names like it are told first."""
    parts = {one: one.rpartition(".")[2] for one in known}
    last = name.rpartition(".")[2]
    near = [last] if last in parts.values() else get_close_matches(last, parts.values(), 3, 0.6)
    like = [one for one, part in parts.items() if part in near] or get_close_matches(name, parts)
    first = f"did you mean {' or '.join(like)}?\n            " if like else ""
    return BadArgument(
        what,
        expected="the name of one that there is",
        found=name,
        remedy=f"{first}there are {', '.join(parts)}",
    )


def all_step_names() -> list[str]:
    """The names of all kinds of steps, those of programs with named axes too."""
    steps = (*LINEAR, *NONLINEAR, *OTHERS, *OF_REFS, *OF_AXES)
    return [*OF_CONTROL, *sorted({_name(step) for _, step in steps})]


def unknown_step(what: str, name: str) -> BadArgument:
    """The error for a name of a step that does not exist."""
    return _unknown(what, name, all_step_names())


def step_names(linear: bool = False) -> list[str]:
    """The names of all kinds of steps; of those that linear values can take."""
    rows = [*LINEAR, *OF_REFS] if linear else [*LINEAR, *NONLINEAR, *OTHERS, *OF_REFS]
    return [_name(step) for _, step in rows] + [*CONTROL, "solve"]


def _named(name: str, axes: bool) -> list[Step]:
    if name in OF_CONTROL:
        return [_growing(OF_CONTROL[name][1])]
    steps = (*LINEAR, *NONLINEAR, *OTHERS, *OF_REFS, *OF_AXES)
    found: list[Step] = [step for _, step in steps if _name(step) == name]
    if not found:
        raise unknown_step("programs cannot be full of a kind of step that does not exist", name)
    return [] if not axes and found[0] in [step for _, step in OF_AXES] else found


def _name(step: Step) -> str:
    return f"{step.__module__.rpartition('.')[2]}.{step.__name__}"
