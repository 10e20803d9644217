"""Try laws on random programs, and report what was tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median_low
from textwrap import fill
from typing import Final, NamedTuple

from effax.ir.analysis.queries import size, walk
from effax.ir.errors import BadArgument, NotApplicable, Unfinished
from effax.ir.syntax import Jaxpr
from effax.testing.generate.features import Features, as_features
from effax.testing.generate.focus import Focus, Focused, focus_of
from effax.testing.generate.random_programs import seed_of, subject
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import check_features
from effax.testing.generate.values import MAX_SECONDS, MAX_STEPS, limited
from effax.testing.laws.law import About, Law
from effax.testing.report.report import LawBroken
from effax.testing.shrink.search import MOST, MOST_COSTLY, shrunk
from effax.tree import PyTree

Drawn = tuple[PyTree, ...]
"""The first arguments of a law: its subject."""

Arguments = Mapping[str, object]
"""The arguments of laws by name, but for the seed."""


class Tried(NamedTuple):
    """The programs on which a law was tried.

    Attributes:
        law: its name.
        programs: the number of different programs for which it holds.
        sizes: their numbers of equations, subjaxprs included; sorted.
        primitives: each primitive, with the number of programs that have it; the most frequent
            first.
        skipped: the number of programs that do not test it: an assumption fails, or rounding
            decides their results.
        refused: the reasons why a rule does not apply to others (``NotApplicable``), with their
            numbers of programs.
        stopped: the number of programs of which an evaluation did not end within its bounds.
    """

    law: str
    programs: int
    sizes: tuple[int, ...]
    primitives: tuple[tuple[str, int], ...]
    skipped: int
    refused: tuple[tuple[str, int], ...]
    stopped: int = 0

    def __str__(self) -> str:
        lines = [f"{self.law}: tried on no program"]
        if self.programs:
            least, middle, most = self.sizes[0], median_low(self.sizes), self.sizes[-1]
            many = f"{_programs(self.programs)} of {least} to {most} equations"
            lines = [f"{self.law}: {many}, median {middle}"]
            found = ", ".join(f"{name} {n}" for name, n in self.primitives)
            lines.append(fill(found, 98, initial_indent="  ", subsequent_indent="  "))
        if self.skipped:
            lines.append(f"  {_programs(self.skipped)} skipped")
        lines += [f"  {_programs(n)} refused: {why}" for why, n in self.refused]
        if self.stopped:
            lines.append(f"  {_programs(self.stopped)} stopped: an evaluation does not end")
        return "\n".join(lines)


def _programs(n: int) -> str:
    return f"{n} program{'' if n == 1 else 's'}"


class Trial:
    """The state of a law while it is tried.

    Attributes:
        law: the law.
        broken: the first failure, if there is one.
        drawn: the arguments that fail, and the seed.
    """

    def __init__(self, law: Law[...], arguments: Arguments) -> None:
        self.law = law
        self.arguments: Arguments = arguments
        self.broken: LawBroken | None = None
        self.drawn: tuple[Drawn, int] | None = None
        self._passed: dict[Drawn, None] = {}
        self._skipped = 0
        self._refused: Counter[str] = Counter()
        self.stopped: dict[Drawn, Unfinished] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        """Check the law, and keep the first failure."""
        try:
            with limited(*self._limits()):
                applies = run(self.law, drawn, seed, self.arguments)
            if applies:
                self._passed[drawn] = None
            else:
                self._skipped += 1
        except LawBroken as broken:
            if isinstance(broken.root, NotApplicable):
                self._refused[broken.root.what] += 1
            elif isinstance(broken.root, Unfinished):
                self.stopped[drawn] = broken.root
            else:
                self.fail(broken, drawn, seed)
        except Exception as error:
            # The law calls the `assume` of Hypothesis.
            if type(error).__name__ != "UnsatisfiedAssumption":
                raise
            self._skipped += 1

    def fail(
        self, broken: LawBroken, drawn: Drawn, seed: int, arguments: Arguments | None = None
    ) -> None:
        """Keep a failure, what was drawn, and the arguments of the law if they are others."""
        self.broken, self.drawn = broken, (drawn, seed)
        self.arguments = self.arguments if arguments is None else arguments

    def _limits(self) -> tuple[int, float]:
        """Return the bounds of evaluations: those that the law is passed, or the default."""
        steps, seconds = (self.arguments.get(name) for name in ("max_steps", "max_seconds"))
        return (
            steps if isinstance(steps, int) else MAX_STEPS,
            seconds if isinstance(seconds, float | int) else MAX_SECONDS,
        )

    @property
    def skipped(self) -> int:
        """Return the number of tries that do not test it."""
        return self._skipped

    def report(self, others: Sequence[str] = ()) -> LawBroken:
        """Return the failure for a program that is as small as possible."""
        assert self.broken is not None and self.drawn is not None, "only a broken law is reported"

        def failure(drawn: Drawn, seed: int) -> LawBroken | None:
            try:
                run(self.law, drawn, seed, self.arguments)
            except LawBroken as broken:
                return broken
            return None

        most = MOST_COSTLY if self.law.costly else MOST
        return shrunk(self.law.about, *self.drawn, self.broken, failure, most).with_others(others)

    def tried(self) -> Tried:
        """Return the programs on which it was tried."""
        programs = [[x for x in drawn if isinstance(x, Jaxpr)] for drawn in self._passed]
        sizes = [sum(map(size, parts)) for parts in programs]
        names = Counter(
            name
            for parts in programs
            for name in {place.eqn.prim.name for part in parts for place in walk(part)}
        )
        return Tried(
            self.law.name,
            len(programs),
            tuple(sorted(sizes)),
            tuple(sorted(names.items(), key=lambda item: (-item[1], item[0]))),
            self._skipped,
            tuple(sorted(self._refused.items())),
            len(self.stopped),
        )


def run(law: Law[...], drawn: Drawn, seed: int, arguments: Arguments) -> bool:
    """Check a law for these arguments; return False if it skips them. Raises LawBroken."""
    named = {"seed": seed, **arguments}
    return law.applies(*drawn, **{name: x for name, x in named.items() if law.takes(name)})


Draw = Callable[[RandomSource], Drawn]
"""Generates the subject of laws."""


def attempt_on(trials: Sequence[Trial], draw: Draw, examples: int, seed: int | str = 0) -> int:
    """Try laws on the same random arguments; after a failure, on few more.

    A fault that breaks several laws usually breaks them on similar programs.

    Returns:
        The number of examples to try on other kinds of programs.
    """
    left = [trial for trial in trials if trial.broken is None]
    begun, limit = len(left), examples
    for i in range(examples):
        if not left or i >= limit:
            break
        choose = RandomSource(Random(f"{seed}.{i}" if seed else i))
        # The seed of the inputs is a seed of the next program too.
        drawn, seed = draw(choose), seed_of(choose)
        for trial in left:
            trial.try_on(drawn, seed)
        left = [trial for trial in left if trial.broken is None]
        if len(left) < begun and limit == examples:
            limit = min(examples, 2 * i + 10)
    return limit


COSTLY: Final = 10
"""A costly law is tried on one program in so many."""


def try_all(
    laws: Sequence[Law[...]],
    arguments: Arguments,
    examples: int,
    features: Features | None = None,
    focus: Focus | Sequence[Focus] = "",
    seed: int = 0,
) -> list[Trial]:
    """Try laws on random programs; those about the same kind of programs share them.

    Args:
        laws: the laws.
        arguments: their arguments by name.
        examples: the number of programs a law; fewer for costly ones.
        features: the features of the programs; if None, those of each law.
        focus: the steps and patterns of which programs are full. Linear programs have no patterns.
        seed: another one tries other programs.

    Raises:
        BadArgument: the features are unknown, or there are too few examples.
    """
    focused = focus_of(focus)
    if examples < 1:
        raise BadArgument("a law is tried on programs", "examples of at least 1", str(examples))
    trials = [Trial(law, arguments) for law in laws]
    groups: dict[tuple[About, Features, bool], list[Trial]] = {}
    for trial in trials:
        law = trial.law
        wanted = law.features if features is None else as_features(features)
        groups.setdefault((law.about, wanted, law.costly and len(laws) > 1), []).append(trial)
    for (about, wanted, costly), group in groups.items():
        each = [replace(wanted, focus=name) for name in focused.names] or [wanted]
        for one in each:
            check_features(one)
        draw = partial(_subject, about=about, features=each, focused=focused)
        limit = attempt_on(group, draw, -(-examples // COSTLY) if costly else examples, seed)
        if any(trial.broken for trial in group):
            examples = min(examples, limit)
    return trials


def _subject(
    choose: RandomSource, about: About, features: Sequence[Features], focused: Focused
) -> Drawn:
    drawn: Drawn = ()
    for _ in range(REDRAWN):
        # A choice among one is not drawn, so that programs do not depend on `focus` being a list.
        one = choose.pick(features) if len(features) > 1 else features[0]
        drawn = subject(choose, about, one, focused.patterns)
        if focused.meets(drawn[0]):
            break
    return drawn


REDRAWN: Final = 20
"""The number of programs that are generated for one that meets a predicate of the focus."""


def raise_broken(trials: Sequence[Trial], strict: bool) -> tuple[Tried, ...]:
    """Raise LawBroken for the simplest broken law; return what was tried if none is.

    Raises BadArgument, if strict, for a law that was tried on no program.
    """
    __tracebackhide__ = True
    broken = [trial for trial in trials if trial.broken is not None]
    if broken:
        raise broken[0].report([trial.law.name for trial in broken[1:]]) from None
    tried = tuple([trial.tried() for trial in trials])
    for one in tried:
        if strict and not one.programs:
            raise BadArgument(
                f"{one.law} was tried on no program",
                expected="programs that satisfy the assumptions of the law",
                found=str(one),
                remedy="assume less, pass other `features`, or try more `examples`",
            )
    return tried
