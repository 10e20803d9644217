"""What breaks a law made small, by taking away from it whatever it does not need to break it.

Deterministic, and bounded: a law is held to so many candidates at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from returns.result import Success

from effax.ir.analysis.check import check
from effax.ir.syntax import Jaxpr, renumbered
from effax.ir.types import RefType
from effax.testing.generate.values import check_outcomes, random_inputs, run, scaled_outcome
from effax.testing.laws.law import About
from effax.testing.report.report import LawBroken
from effax.testing.shrink.candidates import Subject, closed, made_of, measure, smaller
from effax.transforms.framework.dead_code import used_variables
from effax.tree import PyTree

Drawn = tuple[PyTree, ...]
Hold = Callable[[Drawn, int], LawBroken | None]
"""Holds arguments and a seed to a law; how it is broken, if it is."""

MOST: Final = 1500
MOST_COSTLY: Final = 120
"""How many candidates are held to a law, and to one of which a try takes long."""


def shrunk(
    about: About, drawn: Drawn, seed: int, broken: LawBroken, hold: Hold, most: int = MOST
) -> LawBroken:
    """How a law is broken in the same way by something small.

    Args:
        about: what the law is about.
        drawn: what breaks it.
        seed: with which seed.
        broken: how.
        hold: the law.
        most: how many candidates are held to it at most.
    """
    return _Search(about, drawn, seed, broken, hold, most).run()


class _Search:
    """The smallest so far, and what was tried."""

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
            for way in range(_WAYS):
                while self.left > 0 and self.first_of(way):
                    improved = True
        return self.broken

    def first_of(self, way: int) -> bool:
        """Take the first candidate of one kind that breaks the law; whether there is one."""
        size = _size(self.drawn)
        for candidate in _candidates(self.about, self.drawn, way):
            if self.left <= 0:
                return False
            if _size(candidate) < size and self.accepts(candidate, self.seed):
                return True
        # Inputs are drawn together: without one of them others have other values.
        return way == _INPUTS and self.without_unused(size)

    def without_unused(self, size: tuple[int, ...]) -> bool:
        """Take away inputs that nothing uses, with whatever seed breaks the law then."""
        for candidate in _unused(self.about, self.drawn):
            if _size(candidate) < size:
                for seed in range(_OTHER_SEEDS):
                    if self.left > 0 and self.accepts(candidate, seed):
                        return True
        return False

    def smaller_seed(self) -> bool:
        return any(self.accepts(self.drawn, seed) for seed in range(min(3, self.seed)))

    def accepts(self, drawn: Drawn, seed: int) -> bool:
        """Whether a candidate breaks the law in the same way; then it is what there is."""
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


_WAYS: Final = 8
_INPUTS: Final = 6
"""How many ways there are, and which of them takes away inputs."""

_OTHER_SEEDS: Final = 12
"""With how many seeds a program is tried that lacks inputs which nothing uses."""


def _size(drawn: Drawn) -> tuple[int, ...]:
    sizes = [measure(x) for x in drawn if isinstance(x, Jaxpr)]
    return tuple([sum(column) for column in zip(*sizes, strict=True)])


def _candidates(about: About, drawn: Drawn, way: int) -> Iterator[Drawn]:
    """Smaller things of the same kind."""
    if about is About.PAIRS:
        first, second = drawn
        yield from _pairs(first, second, way)
        return
    jaxpr, *rest = drawn
    masked = about in (About.LINEAR, About.OPEN_LINEAR)
    linear = rest[0] if masked else (False,) * len(jaxpr.binders)
    ways = list(smaller(Subject(jaxpr, linear)))
    for made in ways[way]():
        yield (made.jaxpr, made.linear, *rest[1:]) if masked else (made.jaxpr, *rest)


def _unused(about: About, drawn: Drawn) -> Iterator[Drawn]:
    """What is drawn without the inputs that nothing uses: without all of them, then each."""
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
    """Smaller pairs: the second takes what the first gives, then its references."""
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
        ways = list(smaller(Subject(first, (False,) * len(first.binders))))
        # The first way gives other results, which the second program does not take.
        for made in ways[way]():
            yield made.jaxpr, second


def _without_place(jaxpr: Jaxpr, binders: int | None = None, outs: int | None = None) -> Jaxpr:
    """The program without an input, or without a result."""
    return Jaxpr(
        [v for i, v in enumerate(jaxpr.binders) if i != binders],
        jaxpr.eqns,
        [a for i, a in enumerate(jaxpr.outs) if i != outs],
    )


def _fits(about: About, drawn: Drawn) -> bool:
    """Whether something is what laws of a kind are about."""
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
    """f(a·x + b·y) = a·f(x) + b·f(y), of results and of linear references; others stay."""
    x, y = random_inputs(jaxpr.in_types, 11), random_inputs(jaxpr.in_types, 12)
    y = [w if has else v for v, w, has in zip(x, y, linear, strict=True)]
    mixed = [
        np.asarray(-2.0 * v + 0.5 * w, v.dtype) if has else v
        for v, w, has in zip(x, y, linear, strict=True)
    ]
    held = [has for t, has in zip(jaxpr.in_types, linear, strict=True) if isinstance(t, RefType)]
    try:
        with np.errstate(all="ignore"):
            expected = scaled_outcome(run(jaxpr, x), run(jaxpr, y), held)
            check_outcomes(expected, run(jaxpr, mixed))
    except Exception:  # noqa: BLE001  what cannot be run is not linear
        return False
    return all(t.dtype.kind in "fcV" for t in jaxpr.out_types)
