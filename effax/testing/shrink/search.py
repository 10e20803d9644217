"""Shrink the arguments that break a law, by removing parts that are not needed to break it.

The search is deterministic, and tries a bounded number of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from returns.result import Success

from effax.ir.analysis.check import check
from effax.ir.edit.alpha import renumbered
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType
from effax.testing.generate.values import check_outcomes, random_inputs, run, scaled_outcome
from effax.testing.laws.law import About
from effax.testing.report.report import LawBroken
from effax.testing.shrink.candidates import INPUTS, WAYS, Subject, closed, made_of, measure, smaller
from effax.transforms.framework.dead_code import used_variables
from effax.tree import PyTree

Drawn = tuple[PyTree, ...]
Hold = Callable[[Drawn, int], LawBroken | None]
"""Returns the failure of a law for arguments and a seed, or None."""

MOST: Final = 1500
MOST_COSTLY: Final = 120
"""The number of candidates for a law, and for a costly one."""


def shrunk(
    about: About, drawn: Drawn, seed: int, broken: LawBroken, hold: Hold, most: int = MOST
) -> LawBroken:
    """Return a failure of the same kind for arguments that are as small as possible.

    Args:
        about: the subject of the law.
        drawn: the arguments that break it.
        seed: the seed.
        broken: the failure.
        hold: returns the failure of the law for other arguments, or None.
        most: the greatest number of candidates.
    """
    return _Search(about, drawn, seed, broken, hold, most).run()


class _Search:
    """The state of the search."""

    def __init__(
        self, about: About, drawn: Drawn, seed: int, broken: LawBroken, hold: Hold, most: int
    ) -> None:
        self.about = about
        self.drawn = drawn
        self.seed = seed
        self.broken = broken
        self.hold = hold
        self.left = most
        self.seen: set[tuple[Drawn, int]] = {(drawn, seed)}

    def run(self) -> LawBroken:
        improved = True
        while improved and self.left > 0:
            improved = self.smaller_seed()
            for way in range(len(WAYS)):
                while self.left > 0 and self.first_of(way):
                    improved = True
        return self.broken

    def first_of(self, way: int) -> bool:
        """Accept the first candidate of a kind that breaks the law; return whether one does."""
        size = _size(self.drawn)
        for candidate in _candidates(self.about, self.drawn, way):
            if self.left <= 0:
                return False
            if _size(candidate) < size and self.accepts(candidate, self.seed):
                return True
        # Inputs are drawn together: the removal of one changes the values of others.
        return way == INPUTS and self.without_unused(size)

    def without_unused(self, size: tuple[int, ...]) -> bool:
        """Remove unused inputs, with any seed for which the law breaks then."""
        for candidate in _unused(self.about, self.drawn):
            if _size(candidate) < size:
                for seed in range(_OTHER_SEEDS):
                    if self.left > 0 and self.accepts(candidate, seed):
                        return True
        return False

    def smaller_seed(self) -> bool:
        return any(self.accepts(self.drawn, seed) for seed in range(min(3, self.seed)))

    def accepts(self, drawn: Drawn, seed: int) -> bool:
        """Return whether a candidate breaks the law in the same way, and keep it then."""
        drawn = tuple([renumbered(x) if isinstance(x, Jaxpr) else x for x in drawn])
        if (drawn, seed) in self.seen:
            return False
        self.seen.add((drawn, seed))
        if not _fits(self.about, drawn):
            return False
        self.left -= 1
        found = self.hold(drawn, seed)
        if found is None or found.kind != self.broken.kind:
            return False
        self.drawn, self.seed, self.broken = drawn, seed, found
        return True


_OTHER_SEEDS: Final = 12
"""The number of seeds that are tried after unused inputs are removed."""


def _size(drawn: Drawn) -> tuple[int, ...]:
    sizes = [measure(x) for x in drawn if isinstance(x, Jaxpr)]
    return tuple([sum(column) for column in zip(*sizes, strict=True)])


def _candidates(about: About, drawn: Drawn, way: int) -> Iterator[Drawn]:
    """Yield smaller arguments of the same kind."""
    if about is About.PAIRS:
        first, second = drawn
        yield from _pairs(first, second, way)
        return
    jaxpr, *rest = drawn
    masked = about in (About.LINEAR, About.OPEN_LINEAR)
    linear = rest[0] if masked else (False,) * len(jaxpr.binders)
    for made in smaller(Subject(jaxpr, linear), way):
        yield (made.jaxpr, made.linear, *rest[1:]) if masked else (made.jaxpr, *rest)


def _unused(about: About, drawn: Drawn) -> Iterator[Drawn]:
    """Yield the arguments without unused inputs: without all of them, then without each."""
    if about is About.PAIRS:
        return
    jaxpr, *rest = drawn
    used = used_variables(jaxpr)
    idle = [i for i, v in enumerate(jaxpr.binders) if v.id not in used]
    for gone in [idle, *([i] for i in idle if len(idle) > 1)]:
        kept = [i for i in range(len(jaxpr.binders)) if i not in gone]
        made = Jaxpr([jaxpr.binders[i] for i in kept], jaxpr.eqns, jaxpr.outs)
        if about in (About.LINEAR, About.OPEN_LINEAR):
            yield made, tuple([rest[0][i] for i in kept]), *rest[1:]
        elif idle:
            yield made, *rest


def _pairs(first: Jaxpr, second: Jaxpr, way: int) -> Iterator[Drawn]:
    """Yield smaller pairs: the second takes the results of the first, then its references."""
    if way == 0:
        for i in range(len(second.outs)):
            yield first, _without_place(second, outs=i)
    elif way == 1:
        for fewer in made_of(closed(second)):
            yield first, fewer
    elif way == 2:
        used, used_first = used_variables(second), used_variables(first)
        n = len(first.outs)
        for i in range(n):
            if second.binders[i].id not in used:
                yield _without_place(first, outs=i), _without_place(second, binders=i)
        refs = [i for i, t in enumerate(first.in_types) if isinstance(t, RefType)]
        for j, i in enumerate(refs, n):
            if first.binders[i].id not in used_first and second.binders[j].id not in used:
                yield _without_place(first, binders=i), _without_place(second, binders=j)
    else:
        # The first kinds change the results, which are inputs of the second program.
        for made in smaller(Subject(first, (False,) * len(first.binders)), way):
            yield made.jaxpr, second


def _without_place(jaxpr: Jaxpr, binders: int | None = None, outs: int | None = None) -> Jaxpr:
    """Return the program without an input, or without a result."""
    return Jaxpr(
        [v for i, v in enumerate(jaxpr.binders) if i != binders],
        jaxpr.eqns,
        [a for i, a in enumerate(jaxpr.outs) if i != outs],
    )


def _fits(about: About, drawn: Drawn) -> bool:
    """Return whether the arguments are a subject of the kind."""
    programs = [x for x in drawn if isinstance(x, Jaxpr)]
    if not all(isinstance(check(jaxpr), Success) for jaxpr in programs):
        return False
    if about is About.PAIRS:
        first, second = programs
        refs = [t for t in first.in_types if isinstance(t, RefType)]
        return second.in_types == (*first.out_types, *refs)
    if about is About.LINEAR:
        return _is_linear(*drawn)
    return True


def _is_linear(jaxpr: Jaxpr, linear: tuple[bool, ...]) -> bool:
    """Return whether f(a·x + b·y) = a·f(x) + b·f(y), references included."""
    x, y = random_inputs(jaxpr.in_types, 11), random_inputs(jaxpr.in_types, 12)
    y = [w if has else v for v, w, has in zip(x, y, linear, strict=True)]
    mixed = [
        np.asarray(-2.0 * v + 0.5 * w, v.dtype) if has else v
        for v, w, has in zip(x, y, linear, strict=True)
    ]
    mask = [has for t, has in zip(jaxpr.in_types, linear, strict=True) if isinstance(t, RefType)]
    try:
        with np.errstate(all="ignore"):
            expected = scaled_outcome(run(jaxpr, x), run(jaxpr, y), mask)
            check_outcomes(expected, run(jaxpr, mixed))
    except Exception:  # noqa: BLE001  # a program that fails is not linear
        return False
    return all(t.dtype.kind in "fcV" for t in jaxpr.out_types)
